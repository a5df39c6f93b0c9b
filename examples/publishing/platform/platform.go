// Package platform is a small external platform for articles, as the publishing
// example meets it: it takes no key, publishes whatever it is sent as often as
// it is sent, and can be asked for an article by its slug a moment later.
package platform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// VisibleAfter is how long a new article stays out of the list.
const VisibleAfter = 500 * time.Millisecond

// Article is a published one.
type Article struct {
	ID    string `json:"id"`
	Slug  string `json:"slug"`
	Title string `json:"title"`
	Body  string `json:"body"`

	at time.Time
}

// Platform is an http.Handler that counts what really happened. The zero value
// is an empty one.
type Platform struct {
	// Lose is how many of the next articles are published without an answer.
	Lose int
	// Now is the platform's clock; nil is time.Now.
	Now func() time.Time

	mu        sync.Mutex
	published []Article
}

// Published is everything that was ever published.
func (p *Platform) Published() []Article {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.published)
}

// ServeHTTP publishes what is posted, and lists the articles of ?slug=S.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		p.publish(w, r)
		return
	}
	p.list(w, r)
}

func (p *Platform) publish(w http.ResponseWriter, r *http.Request) {
	var a Article
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil || a.Slug == "" {
		http.Error(w, "nothing was published: an article needs a slug", http.StatusUnprocessableEntity)
		return
	}
	p.mu.Lock()
	a.ID, a.at = fmt.Sprintf("art_%d", len(p.published)+1), p.now()
	p.published = append(p.published, a)
	lose := p.Lose > 0
	if lose {
		p.Lose--
	}
	p.mu.Unlock()
	if lose {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	answer(w, http.StatusCreated, a)
}

func (p *Platform) list(w http.ResponseWriter, r *http.Request) {
	now := p.now()
	found := slices.DeleteFunc(p.Published(), func(a Article) bool {
		return a.Slug != r.URL.Query().Get("slug") || now.Sub(a.at) < VisibleAfter
	})
	answer(w, http.StatusOK, map[string][]Article{"articles": append([]Article{}, found...)})
}

func (p *Platform) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone
}
