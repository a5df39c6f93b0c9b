package engine

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
)

// keep renews the leases of the runs that the worker holds, and tells their
// executions what was asked of them meanwhile.
func (w *Worker) keep(ctx context.Context) {
	look := min(w.e.opt.Lease/3, time.Second) // a request to stop is heard within a second
	for {
		timer := time.NewTimer(look)
		select {
		case <-timer.C:
			w.renew(ctx)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// renew extends the leases of the runs that have been executing for a while.
func (w *Worker) renew(ctx context.Context) {
	held := map[semel.ID]*execution{}
	var fences []semel.RunFence
	w.mu.Lock()
	for id, x := range w.held {
		if w.e.clock().Sub(x.from) > min(time.Second, w.e.opt.Lease/4) {
			held[id] = x
			fences = append(fences, x.fence())
		}
	}
	w.mu.Unlock()
	if len(fences) == 0 {
		return
	}
	asked := w.e.clock()
	patient, cancel := context.WithTimeout(ctx, w.e.opt.Lease)
	defer cancel()
	runs, err := w.runs.RenewRuns(patient, fences, w.e.opt.Lease)
	for _, r := range runs {
		held[r.ID].renewed(asked, &r)
		delete(held, r.ID)
	}
	if err != nil {
		if ctx.Err() == nil {
			w.e.log.Warn("renew the leases of runs", "runs", len(held), "err", err)
		}
		return // nothing is known of the rest
	}
	for _, x := range held {
		x.lose()
	}
}
