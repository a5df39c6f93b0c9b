package publishing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/examples/publishing"
	"github.com/semel-dev/semel/semeltest"
)

var (
	publish    = workflow()
	submission = publishing.Submission{Slug: "retry", Round: 1}
	article    = publishing.Article{Slug: "retry", Title: "Retry", Body: "Safe to press."}
	published  = publishing.Published{ID: "art_1", Slug: "retry"}
)

// workflow reaches nothing: semeltest answers in the place of its destinations.
func workflow() semel.Workflow[publishing.Submission] {
	platform, err := httpdest.New(httpdest.Options{Name: "platform", Base: "https://platform.example.com"})
	if err != nil {
		panic(err)
	}
	database, err := sqldest.New("postgres://localhost/site", sqldest.Options{Name: "site"})
	if err != nil {
		panic(err)
	}
	return publishing.New(publishing.Destinations{Platform: platform, Database: database})
}

func rows(a publishing.Article) semeltest.Answer {
	return semeltest.Completed(sqldest.Found[publishing.Article]{Rows: []publishing.Article{a}})
}

func TestApprovedArticleIsPublishedAndRecorded(t *testing.T) {
	w := semeltest.New(t, publish.Definition())
	w.On("read", rows(article))
	w.On("create", semeltest.Completed(published))
	run := w.Run(publish.New("", submission))
	if run.State != semel.RunWaiting || len(w.Requests("create")) != 0 {
		t.Fatalf("%s (%s), %d articles; want one that waits for the editor", run.State, run.Reason, len(w.Requests("create")))
	}
	w.Approve(run)
	if run = w.Await(run); run.State != semel.RunCompleted {
		t.Fatalf("%s: %s", run.State, run.Reason)
	}
	if n := len(w.Effects("record")); n != 1 || !strings.Contains(string(w.Effects("record")[0].Request.Body), "art_1") {
		t.Errorf("recorded %d times, want the id once", n)
	}
}

func TestLostAnswerIsLookedUp(t *testing.T) {
	for name, lost := range map[string]semeltest.Answer{"it was published": semeltest.LostAfter(published), "it was not": semeltest.LostBefore()} {
		t.Run(name, func(t *testing.T) {
			w := semeltest.New(t, publish.Definition())
			w.On("read", rows(article))
			w.On("create", lost, semeltest.Completed(published))
			run := w.Run(publish.New("", submission))
			w.Approve(run)
			if run = w.Await(run); run.State != semel.RunCompleted || len(w.Effects("create")) != 1 {
				t.Errorf("%s (%s), %d articles; want one", run.State, run.Reason, len(w.Effects("create")))
			}
		})
	}
}

func TestEditAfterApprovalStopsIt(t *testing.T) {
	edited := article
	edited.Body = "Safe to press twice."
	w := semeltest.New(t, publish.Definition())
	w.On("read", rows(article), rows(edited))
	run := w.Run(publish.New("", submission))
	w.Approve(run)
	if run = w.Await(run); run.State != semel.RunHeld || len(w.Requests("create")) != 0 {
		t.Fatalf("%s (%s), %d articles; want a run that is held, and none", run.State, run.Reason, len(w.Requests("create")))
	}

	w.Change(run, semel.CancelRun) // and the editor is asked again
	next := w.Run(publish.New("", publishing.Submission{Slug: "retry", Round: 2}))
	w.Approve(next)
	if next = w.Await(next); next.State != semel.RunCompleted || len(w.Effects("create")) != 1 {
		t.Errorf("%s (%s), %d articles; want the edited one", next.State, next.Reason, len(w.Effects("create")))
	}
}

func TestRejectedArticleIsNotPublished(t *testing.T) {
	w := semeltest.New(t, publish.Definition())
	w.On("read", rows(article))
	run := w.Run(publish.New("", submission))
	w.Advance(72 * time.Hour)
	w.Reject(run, "too short")
	if run = w.Await(run); run.State != semel.RunFailed || len(w.Requests("create")) != 0 {
		t.Errorf("%s (%s), %d articles; want a failed run, and none", run.State, run.Reason, len(w.Requests("create")))
	}
}
