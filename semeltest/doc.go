// Package semeltest runs workflows under go test: on the real engine and a real
// store, with scripted destinations, and with time that passes as fast as the
// work allows.
//
//	func TestALostAnswerChargesOnce(t *testing.T) {
//		w := semeltest.New(t, billing.Definition())
//		w.On("charge", semeltest.LostAfter(Charge{ID: "ch_1"}), semeltest.Completed(nil))
//		run := w.Run(billing.New("", Invoice{ID: "4417"}))
//		if n := len(w.Effects("charge")); run.State != semel.RunCompleted || n != 1 {
//			t.Errorf("%s (%s), charged %d times", run.State, run.Reason, n)
//		}
//	}
//
// # What is real
//
// Claims, records, recovery, waits and the rules for what may be sent again are
// those of production. Replaced are the destinations of all actions, also
// inside Each and Parallel, and the passing of time. A scripted destination
// keeps the promises of the action's contract: it honours keys for their window
// and nothing longer, can be looked up once an effect is visible, and knows no
// second effect where repeating changes nothing. A contract that promises
// nothing gets a destination that does everything as often as it is asked.
// Limits of destinations do not apply.
//
// # What is checked without being asked
//
// The test fails at its end when an operation happened twice, and when an answer
// was scripted for an action that no workflow has. A step that is called from a
// goroutine which the workflow started itself, or at the same time as another,
// holds the run, with a Reason that says what to do.
//
// # Time
//
// Run, Await and Advance execute what is due, move the clock to what is due
// next, and so on; nothing else executes anything. Await stops where only the
// outside can bring a run further: an event, an approval, a person. To let such
// a wait time out, Advance.
package semeltest
