package check_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/connection"
	"github.com/semel-dev/semel/workflowfile"
)

// corpusConfig are the connections of the corpus.
const corpusConfig = `connections:
  bank:
    kind: http
    base: https://bank.example.com
    protection: keyed
    key_header: Idempotency-Key
    window: 24h
    timeout: 5s
    actions: {charge: {post: /charges}, refund: {post: /refunds}, charge_and_notify: {post: /both}, brand: {post: /brands}}
  slow: {kind: http, base: https://slow.example.com, protection: keyed, key_header: Idempotency-Key, window: 24h, timeout: 2h, attempts: 3, actions: {charge: {post: /charges}}}
  asked: {kind: http, base: https://asked.example.com, protection: keyed, key_header: Idempotency-Key, window: 1h, lookup: "https://asked.example.com/charges/{key}", actions: {charge: {post: /charges}}}
  proof: {kind: http, base: https://proof.example.com, protection: lookup, lookup: "https://proof.example.com/charges/{key}", max_processing: 5s, absence_is_proof: true, actions: {charge: {post: /charges}}}
  maybe: {kind: http, base: https://maybe.example.com, protection: lookup, lookup: "https://maybe.example.com/charges/{key}", max_processing: 5s, actions: {charge: {post: /charges}}}
  mail: {kind: http, base: https://mail.example.com, protection: none, actions: {send: {post: /messages}}}
  desk: {kind: http, base: https://desk.example.com, protection: absolute, actions: {set: {put: "/t/{body.ticket}"}, close_and_notify: {put: "/c/{body.ticket}"}}}
  tags: {kind: http, base: https://tags.example.com, protection: commutes, effect: absolute, actions: {add: {put: "/t/{body.ticket}"}, notify: {post: /n}}}
  latest: {kind: http, base: https://latest.example.com, protection: lookup, lookup: "/charges/latest", max_processing: 5s, visible_after: 1s, absence_is_proof: true, actions: {charge: {post: /charges}}}
  theirs: {kind: http, base: https://theirs.example.com, protection: lookup, lookup: "/charges?customer={body.customer}", max_processing: 5s, visible_after: 1s, absence_is_proof: true, actions: {charge: {post: /charges}}}
  day: {kind: http, base: https://day.example.com, protection: lookup, lookup: "/c?c={body.customer.id}&d={body.day}", max_processing: 5s, visible_after: 1s, absence_is_proof: true, actions: {charge: {post: /charges}}}
  labelled: {kind: http, base: https://labelled.example.com, protection: lookup, lookup: "/c?ref={body.reference}", max_processing: 5s, visible_after: 1s, absence_is_proof: true, actions: {charge: {post: /charges}}}
  crm: {kind: http, base: https://crm.example.com, protection: keyed, key_header: Idempotency-Key, window: 24h, actions: {create_contact: {post: /contacts}}}
  ledger: {kind: sql, url: "sqlite:ledger.db"}
  books: {kind: sql, url: "sqlite:books.db"}
`

const corpusHead = `name: corpus
version: 1
owner: desk
inputs: {id: {type: string}, customer: {type: string}, customer_id: {type: string}, amount: {type: integer}, day: {type: string}, session_id: {type: string}, password: {type: string}, list: {type: array}, go: {type: boolean}}
steps:
`

// TestCorpusOfFiles: wrong workflows, and what is found in them. The last ones
// look wrong, and are not.
func TestCorpusOfFiles(t *testing.T) {
	const name = `, effect: {key: "k-${{ inputs.id }}"`
	tests := map[string]struct {
		steps string
		want  []string
	}{
		"increments a value that is sent again": {
			`  - {id: a, uses: desk.set, with: {ticket: x, delta: 1}` + name + `}}`, []string{"a: error relative_update"},
		},
		"relative where it commutes": {
			`  - {id: a, uses: tags.add, with: {ticket: x}` + name + `, kind: relative}}`, []string{"a: error relative_update"},
		},
		"relative without any protection": {
			`  - {id: a, uses: mail.send` + name + `, kind: relative}}`, []string{"a: warning relative_update"},
		},
		"key of amount and customer id": {
			`  - {id: a, uses: bank.charge, effect: {key: "${{ inputs.customer_id }}/${{ inputs.amount }}"}}`, []string{"a: warning weak_key"},
		},
		"key of customer and day": {
			`  - {id: a, uses: bank.charge, effect: {key: "${{ inputs.customer }}/${{ inputs.day }}"}}`, []string{"a: note weak_key"},
		},
		"key of an item's amount": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.id}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ line.customer }}-${{ line.amount }}"}}`, []string{"l/a: warning weak_key"},
		},
		"key with a credential":    {`  - {id: a, uses: bank.charge, effect: {key: "sk_live_4eC39HqLyjWD-${{ inputs.id }}"}}`, []string{"a: error secret_in_key"}},
		"key with a reference":     {`  - {id: a, uses: bank.charge, effect: {key: "env:BANK_KEY-${{ inputs.id }}"}}`, []string{"a: error secret_in_key"}},
		"key of a password":        {`  - {id: a, uses: bank.charge, effect: {key: "${{ inputs.password }}-${{ inputs.id }}"}}`, []string{"a: error secret_in_key"}},
		"key that never changes":   {`  - {id: a, uses: bank.charge, effect: {key: for-ever}}`, []string{"a: warning key"}},
		"retry without protection": {`  - {id: a, uses: mail.send` + name + `}, retry: {attempts: 2}}`, []string{"a: warning unprotected_retry"}},
		"retry after an event": {
			`  - {id: w, wait: {event: paid}}
  - {id: a, uses: mail.send` + name + `}, retry: {attempts: 2}}`, []string{"a: warning irreversible_after_wait"},
		},
		"retry in a list after an approval": {
			`  - {id: ok, uses: bank.refund, approve: {}, effect: {key: "r-${{ inputs.id }}"}}
  - id: l
    each: {in: inputs.list, as: line, key: line.id}
    steps:
      - {id: a, uses: mail.send, effect: {key: "${{ line.id }}"}, retry: {attempts: 2}}`, []string{"l/a: warning irreversible_after_wait"},
		},
		"attempts longer than a night":    {`  - {id: a, uses: slow.charge` + name + `}, timeout: 5h}`, []string{"a: warning window_too_short"}},
		"attempts longer than the window": {`  - {id: a, uses: slow.charge` + name + `}, timeout: 8h}`, []string{"a: warning retry_outlasts_window"}},
		"retries longer than the window": {
			`  - {id: a, uses: bank.charge` + name + `}, retry: {attempts: 600, backoff: 5m}}`, []string{"a: warning retry_outlasts_window"},
		},
		"approval with a short life before an event": {
			`  - {id: ask, approve: {step: a, valid: 1h}}
  - {id: w, wait: {event: paid}}
  - {id: a, uses: bank.charge` + name + `}}`, []string{"a: warning approval_expires"},
		},
		"approval that an event may outlast": {
			`  - {id: ask, approve: {step: a, valid: 1h}}
  - {id: w, wait: {event: paid, timeout: 2h}}
  - {id: a, uses: bank.charge` + name + `}}`, []string{"a: warning approval_expires"},
		},
		"approval of a mail that an event may outlast": {
			`  - {id: ask, approve: {step: a, valid: 1h}}
  - {id: w, wait: {event: paid, timeout: 2h}}
  - {id: a, uses: mail.send` + name + `}}`, []string{"a: warning approval_expires"},
		},
		"approval that attempts outlast": {
			`  - {id: a, uses: bank.charge` + name + `}, approve: {valid: 5m}}`, []string{"a: warning approval_expires"},
		},
		"approval under a condition": {
			`  - {id: ask, if: inputs.go, approve: {step: a}}
  - {id: a, uses: bank.charge` + name + `}}`, []string{"a: warning approval_not_covering"},
		},
		"two things by name":         {`  - {id: a, uses: bank.charge_and_notify` + name + `}}`, []string{"a: warning two_effects"}},
		"mail by a member":           {`  - {id: a, uses: bank.charge, with: {options: {sendEmail: true}}` + name + `}}`, []string{"a: warning two_effects"}},
		"mail by a computed member":  {`  - {id: a, uses: bank.charge, with: {notify: "${{ inputs.go }}"}` + name + `}}`, []string{"a: warning two_effects"}},
		"mail to an address":         {`  - {id: a, uses: bank.charge, with: {receipt_email: "${{ inputs.customer }}"}` + name + `}}`, []string{"a: warning two_effects"}},
		"a tag with a message":       {`  - {id: a, uses: tags.add, with: {ticket: x, notify_owner: true}` + name + `}}`, []string{"a: warning status_notifies"}},
		"a status with one, by name": {`  - {id: a, uses: desk.close_and_notify, with: {ticket: x, version: 3}` + name + `}}`, []string{"a: warning status_notifies"}},
		"not found at once":          {`  - {id: a, uses: proof.charge` + name + `}}`, []string{"a: note missing_delays"}},
		"not found is no proof":      {`  - {id: a, uses: maybe.charge` + name + `}}`, []string{"a: warning missing_delays"}},
		"a status":                   {`  - {id: a, uses: desk.set, with: {ticket: x, status: done}` + name + `}}`, []string{"a: warning no_single_writer"}},
		"a lookup of the latest":     {`  - {id: a, uses: latest.charge, with: {amount: 5}` + name + `}}`, []string{"a: error lookup_not_unique"}},
		"a lookup by the customer":   {`  - {id: a, uses: theirs.charge, with: {customer: "${{ inputs.customer }}", amount: 5}` + name + `}}`, []string{"a: warning lookup_not_unique"}},
		"a lookup by who and when":   {`  - {id: a, uses: day.charge, with: {customer: {id: "${{ inputs.customer }}"}, day: "${{ inputs.day }}"}` + name + `}}`, []string{"a: warning lookup_not_unique"}},
		"a lookup by what is fixed":  {`  - {id: a, uses: labelled.charge, with: {reference: invoice}` + name + `}}`, []string{"a: warning lookup_not_unique"}},
		"a reference to who it is":   {`  - {id: a, uses: labelled.charge, with: {reference: "${{ inputs.customer }}"}}`, []string{"a: warning lookup_not_unique"}},
		"a mail that commutes":       {`  - {id: a, uses: tags.add, with: {ticket: x}` + name + `, kind: external}}`, []string{"a: error kind_contradicts_protection"}},
		"a comment that is absolute": {`  - {id: a, uses: desk.set, with: {ticket: x, text: hello}` + name + `, kind: creates}}`, []string{"a: error kind_contradicts_protection"}},
		"key of a customer alone":    {`  - {id: a, uses: bank.charge, effect: {key: "${{ inputs.customer }}"}}`, []string{"a: warning weak_key"}},
		"key of a mail's receiver":   {`  - {id: a, uses: mail.send, effect: {key: "reminder-${{ inputs.customer_id }}", kind: external}}`, []string{"a: warning weak_key"}},
		"key of an item's customer": {
			`  - id: l
    each: {in: inputs.list, as: customer, key: customer.id}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "charge-${{ customer.id }}"}}`, []string{"l/a: warning weak_key"},
		},
		"items told apart by an amount": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.amount}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ inputs.id }}-${{ line.amount }}"}}`, []string{"l/a: warning weak_key"},
		},
		"items told apart by a name": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.name}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ inputs.id }}-${{ line.name }}"}}`, []string{"l/a: warning weak_key"},
		},
		"items with an id, and a key of their names": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.id}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ inputs.id }}-${{ line.name }}"}}`, []string{"l/a: warning weak_key"},
		},
		"two requests under one key": {
			`  - {id: a, uses: bank.charge, with: {amount: 1}` + name + `}}
  - {id: b, uses: bank.charge, with: {amount: 2}` + name + `}}`, []string{"b: error shared_key"},
		},
		"one request twice": {
			`  - {id: a, uses: bank.charge, with: {amount: "${{ inputs.amount }}", lines: [1, {sku: x}]}` + name + `}}
  - {id: b, if: inputs.go, uses: bank.charge, with: {lines: [1, {sku: x}], amount: "${{inputs.amount}}"}` + name + `}}`, []string{"b: warning shared_key"},
		},
		"one request twice, to make good": {
			`  - {id: a, uses: bank.charge` + name + `}}
on_failure:
  - {id: b, uses: bank.charge, with: {amount: 2}` + name + `}}`, []string{"on_failure/b: error shared_key"},
		},
		"two requests for one item": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.id}
    steps:
      - {id: a, uses: bank.charge, with: {amount: 1}, effect: {key: "${{ line.id }}"}}
      - {id: b, uses: bank.charge, with: {amount: 2}, effect: {key: "${{ line.id }}"}}`, []string{"l/b: error shared_key"},
		},
		"accepted, and not there": {`  - {id: a, uses: bank.charge` + name + `}, accept: [{code: no_owner, reason: x}]}`, []string{"a: warning unused_accept"}},
		"accepted, but by another step": {
			`  - {id: a, uses: desk.set, with: {ticket: x, status: done}` + name + `}}
  - {id: b, uses: bank.charge, effect: {key: "b-${{ inputs.id }}"}, accept: [{code: no_single_writer, reason: x}]}`,
			[]string{"a: warning no_single_writer", "b: warning unused_accept"},
		},

		"key of who and what":             {`  - {id: a, uses: bank.charge, effect: {key: "${{ inputs.customer }}-${{ inputs.id }}"}}`, nil},
		"key of a day":                    {`  - {id: a, uses: bank.charge, effect: {key: "report-${{ inputs.day }}"}}`, nil},
		"key of a customer":               {`  - {id: a, uses: bank.charge, effect: {key: "welcome-${{ inputs.customer }}"}}`, nil},
		"key of who is made":              {`  - {id: a, uses: crm.create_contact, effect: {key: "${{ inputs.customer }}", kind: creates}}`, nil},
		"a status of a customer":          {`  - {id: a, uses: bank.charge, effect: {key: "status-${{ inputs.customer }}", kind: absolute}}`, nil},
		"a lookup by the order":           {`  - {id: a, uses: labelled.charge, with: {reference: "${{ inputs.id }}"}` + name + `}}`, nil},
		"a lookup by a customer, for one": {`  - {id: a, uses: theirs.charge, with: {customer: "${{ inputs.customer }}"}, effect: {key: "welcome-${{ inputs.customer }}"}}`, nil},
		"a lookup under the run's key":    {`  - {id: a, uses: labelled.charge, with: {reference: "${{ run.key }}"}}`, nil},
		"a tag that is absolute":          {`  - {id: a, uses: tags.add, with: {ticket: x}` + name + `, kind: absolute}}`, nil},
		"each customer, each month": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.customer}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ inputs.id }}-${{ line.customer }}"}}`, nil,
		},
		"each day of an order": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.date}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ inputs.id }}-${{ line.date }}"}}`, nil,
		},
		"each name of a list": {
			`  - id: l
    each: {in: inputs.list, as: name, key: name}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ inputs.id }}-${{ name }}"}}`, nil,
		},
		"each slug": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.slug}
    steps:
      - {id: a, uses: bank.charge, effect: {key: "${{ line.slug }}"}}`, nil,
		},
		"one key for two actions": {
			`  - {id: a, uses: bank.charge, with: {amount: 1}` + name + `}}
  - {id: b, uses: bank.refund, with: {amount: 1}` + name + `}}`, nil,
		},
		"one key for one of two": {
			`  - {id: a, if: inputs.go, uses: bank.charge, with: {amount: 1}` + name + `}}
  - {id: b, if: "!inputs.go", uses: bank.charge, with: {amount: 2}` + name + `}}`, nil,
		},
		"one key for items of two lists": {
			`  - id: l
    each: {in: inputs.list, as: line, key: line.id}
    steps:
      - {id: a, uses: bank.charge, with: {amount: 1}, effect: {key: "${{ line.id }}"}}
  - id: m
    each: {in: inputs.list, as: line, key: line.id}
    steps:
      - {id: b, uses: bank.charge, with: {amount: 2}, effect: {key: "${{ line.id }}"}}`, nil,
		},
		"one key for two databases": {
			`  - {id: a, uses: sql.exec, with: {at: ledger, file: up.sql}` + name + `, kind: absolute}}
  - {id: b, uses: sql.exec, with: {at: books, file: up.sql}` + name + `, kind: absolute}}`, nil,
		},
		"key of a session's id":           {`  - {id: a, uses: bank.charge, effect: {key: "${{ inputs.session_id }}"}}`, nil},
		"no key":                          {`  - {id: a, uses: bank.charge}`, nil},
		"retry under a key, and a person": {`  - {id: a, uses: bank.charge` + name + `, on_unknown: ask}, retry: {attempts: 3}}`, nil},
		"one attempt":                     {`  - {id: a, uses: mail.send` + name + `}, retry: {attempts: 1}}`, nil},
		"a window of an hour with lookup": {`  - {id: a, uses: asked.charge` + name + `}}`, nil},
		"a wait before a key":             {`  - {id: w, sleep: {for: 720h}}` + "\n" + `  - {id: a, uses: bank.charge` + name + `}}`, nil},
		"a step in the database":          {`  - {id: a, uses: sql.exec, with: {at: ledger, file: up.sql, args: ["${{ inputs.amount }}"]}, effect: {kind: relative}}`, nil},
		"no mail":                         {`  - {id: a, uses: bank.charge, with: {notify: never, send_receipt: false, receipt_email: ""}` + name + `}}`, nil},
		"where to write":                  {`  - {id: a, uses: bank.charge, with: {email: ann@example.com}` + name + `}}`, nil},
		"a name with and in it":           {`  - {id: a, uses: bank.brand` + name + `}}`, nil},
		"the message itself":              {`  - {id: a, uses: mail.send, with: {sms: text}` + name + `}}`, nil},
		"a tag":                           {`  - {id: a, uses: tags.add, with: {ticket: x}` + name + `}}`, nil},
		"a status over a version":         {`  - {id: a, uses: desk.set, with: {ticket: x, if_match: v7}` + name + `}}`, nil},
		"an approval that holds": {
			`  - {id: ask, if: inputs.go, approve: {step: a, valid: 24h}}
  - {id: w, wait: {event: paid, timeout: 2h}}
  - {id: a, if: inputs.go, uses: bank.charge` + name + `}}`, nil,
		},
	}
	config, err := connection.Parse("semel.yaml", []byte(corpusConfig))
	if err != nil {
		t.Fatal(err)
	}
	checks := config.Checks()
	checks.File = func(string) ([]byte, error) { return []byte("update account set balance = balance - $1"), nil }
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, problems := workflowfile.Parse("corpus.yaml", []byte(corpusHead+test.steps+"\n"), checks)
			if d == nil {
				t.Fatal(problems)
			}
			r := check.File(d, problems, checks, check.FileOptions{})
			if diff := cmp.Diff(test.want, briefly(r.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, r.Findings)
			}
			for _, f := range r.Findings {
				if f.Line == 0 || f.Column == 0 || f.Workflow != "corpus@1" || f.Fix == "" {
					t.Errorf("without a place or a cure: %+v", f)
				}
			}
			for line := range strings.Lines(r.Text()) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
					t.Errorf("a line of %d columns: %s", n, line)
				}
			}
		})
	}
}

// briefly are findings as STEP: SEVERITY CODE.
func briefly(findings []check.Finding) (all []string) {
	for _, f := range findings {
		if f.Accepted == "" {
			all = append(all, f.Step+": "+string(f.Severity)+" "+string(f.Code))
		}
	}
	return all
}
