// Package publishing puts one approved article on an external platform, and
// records the platform's id of it in our own database.
//
// The platform takes no key, so a request whose answer is lost cannot simply be
// sent again. But it can be asked for an article by its slug: what a lookup
// finds is published, and what it does not find once enough time has passed is
// not, and is sent again.
package publishing

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// Submission asks for one article to be published. A draft that was edited
// after an editor saw it goes to the editor again, in the next round.
type Submission struct {
	Slug  string `json:"slug"`
	Round int    `json:"round"`
}

// Article is the text in its final words.
type Article struct {
	Slug  string `json:"slug"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

// Published is the article as the platform has it.
type Published struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

// Destinations are what the workflow reaches: the platform, and our database
// with a table article (slug, title, body, platform_id).
type Destinations struct {
	Platform *httpdest.Destination
	Database *sqldest.Database
}

// New makes the workflow.
func New(d Destinations) semel.Workflow[Submission] {
	read := semel.Action[Submission, sqldest.Found[Article]]{
		Name: "read", // no Key: each step reads once
		Send: sqldest.Query[Submission, Article](d.Database, `select slug, title, body from article where slug = $1`,
			func(s Submission) []any { return []any{s.Slug} }),
	}
	create := semel.Action[Article, Published]{
		Name: "create",
		Key:  func(a Article) string { return "article-" + a.Slug },
		Send: httpdest.Post[Article, Published](d.Platform, "/articles"),
	}
	lookup, _ := d.Platform.URL("/articles?slug={body.slug}") // without a base, create has no URL either, and says so
	create.Send.Contract = semel.Contract{
		Effect: semel.Creates, Protection: semel.Lookup, LookupURL: lookup, FoundIn: "articles",
		Timeout: 10 * time.Second, WriteTimeout: 5 * time.Second,
		MaxProcessing: 2 * time.Second, VisibleAfter: time.Second, AbsenceIsProof: true, // the platform's word
	}
	record := semel.Action[Published, sqldest.Written[struct{}]]{
		Name: "record",
		Key:  func(p Published) string { return "article-" + p.Slug },
		Send: sqldest.Exec[Published, struct{}](d.Database, `update article set platform_id = $1 where slug = $2`,
			func(p Published) []any { return []any{p.ID, p.Slug} }),
	}
	draft := func(ctx semel.Context, s Submission) (Article, error) {
		found, err := semel.Do(ctx, read, s)
		if err == nil && len(found.Rows) != 1 {
			err = fmt.Errorf("there are %d articles with the slug %q", len(found.Rows), s.Slug)
		}
		if err != nil {
			return Article{}, err
		}
		return found.Rows[0], nil
	}
	return semel.Workflow[Submission]{
		Name: "publish", Owner: "editors@example.com",
		Key:     func(s Submission) string { return fmt.Sprintf("%s/round-%d", s.Slug, s.Round) },
		Actions: []semel.Definition{read.Definition(), create.Definition(), record.Definition()},
		Func: func(ctx semel.Context, s Submission) error {
			article, err := draft(ctx.Named("draft"), s)
			if err != nil {
				return err
			}
			if err := semel.Approve(ctx, create, article, semel.Ask{Of: "an editor", Summary: "publish " + article.Title}); err != nil {
				return err
			}
			// What is in the database now may not be what the editor saw. Create
			// sends what was approved, to the letter, or holds the run.
			if article, err = draft(ctx.Named("final"), s); err != nil {
				return err
			}
			published, err := semel.Retrying(ctx, create, article, semel.Retry{Attempts: 3}) // after proof that nothing happened
			if err != nil {
				return err
			}
			_, err = semel.Do(ctx, record, published)
			return errors.Join(err, ctx.Return(published))
		},
	}
}
