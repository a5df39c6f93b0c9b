package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/semel-dev/semel/sandbox"
)

// rates is how the destination misbehaves, to first and to later requests.
func rates() map[sandbox.Resource]sandbox.Rate {
	mix := map[sandbox.Fault]int{
		sandbox.DropBefore: 3, sandbox.DropAfter: 3, sandbox.ErrorBefore: 1, sandbox.ErrorAfter: 1, sandbox.BadGateway: 2,
		sandbox.Late: 3, sandbox.Slow: 2, sandbox.Refuse: 3, sandbox.RetainedError: 1,
	}
	return map[sandbox.Resource]sandbox.Rate{
		sandbox.Charges:   {First: .25, Later: .2, Mix: mix},
		sandbox.Transfers: {First: .25, Later: .2, Mix: mix},
		sandbox.Messages:  {First: .12, Later: .12, Mix: mix},
	}
}

// provide is the destination's process: one that honours keys for a day, and
// one that forgets them soon.
func provide(dir string, seed uint64, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var addresses []string
	var servers []*sandbox.Server
	var wg sync.WaitGroup
	for _, one := range []sandbox.Options{
		{LedgerPath: filepath.Join(dir, "main.ledger"), Window: longWindow},
		{LedgerPath: filepath.Join(dir, "short.ledger"), Window: shortWindow},
	} {
		one.VisibleAfter, one.Delay, one.Seed, one.FaultsOn = showsAfter, actsLate, seed, rates()
		s, err := sandbox.New(one)
		if err != nil {
			return err
		}
		door, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses = append(addresses, "http://"+door.Addr().String())
		servers = append(servers, s)
		wg.Go(func() {
			if err := s.Run(ctx, door); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	if err := json.NewEncoder(out).Encode(addresses); err != nil {
		return err
	}
	_, _ = bufio.NewReader(in).ReadString('\n') // its end is the end of the soak
	stop()
	wg.Wait()
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
