package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/sandbox"
)

const sandboxHelp = `A provider that loses your answers: a real HTTP server with a durable ledger of
what really happened. Nothing in it knows Semel; point any client at it.

  POST /v1/charges     honours Idempotency-Key
  POST /v1/transfers   ignores keys, can be looked up by reference after a delay
  POST /v1/messages    neither
  GET  /ledger         what really happened, counted per reference

The header Sandbox-Fault, or --lose, makes calls misbehave: drop_before,
drop_after, error_before, error_after, bad_gateway, late, slow, refuse,
retained_error, partial. NAME@N is for the Nth request of a reference only.`

func newSandbox(sh *shell) *cobra.Command {
	var o sandbox.Options
	var listen, mix string
	var on []string
	cmd := &cobra.Command{
		Use: "sandbox", Short: "Run a provider that loses your answers, to practise on", Long: sandboxHelp,
		Example: "  semel sandbox --listen 127.0.0.1:8089 --ledger ledger.jsonl --lose 0.2\n  semel sandbox --lose-on messages=0.5 --mix drop_after=1",
		Args:    noArguments,
		RunE: ours(func(cmd *cobra.Command, _ []string) error {
			var err error
			if cmd.Flags().Changed("window") && o.Window == 0 {
				return usagef("--window 0s would forget every key at once: give a time such as 3s")
			}
			if o.Faults.Mix, err = parseMix(mix); err != nil {
				return err
			}
			if o.FaultsOn, err = parseRates(on, o.Faults); err != nil {
				return err
			}
			return sh.sandbox(cmd.Context(), listen, o)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&listen, "listen", "127.0.0.1:8089", "address to listen on; port 0 takes a free one")
	f.StringVar(&o.LedgerPath, "ledger", "", "file that keeps the ledger over restarts (default in memory)")
	f.Var(&share{to: &o.Faults.First}, "lose", "share of references, 0 to 1, whose first request misbehaves")
	f.Var(&share{to: &o.Faults.Later}, "lose-later", "share, 0 to 1, of all further requests that misbehave")
	f.StringArrayVar(&on, "lose-on", nil, "RESOURCE=SHARE: another share for charges, transfers or messages; may be repeated")
	f.StringVar(&mix, "mix", "", "FAULT=WEIGHT,... (default drop_after=2,error_after=1,drop_before=1)")
	f.Uint64Var(&o.Seed, "seed", 0, "decides which references misbehave")
	f.Var(&span{to: &o.Window}, "window", "how long charges honour a key (default 24h)")
	f.Var(&zeroable{span{to: &o.VisibleAfter}}, "visible-after", "how long a transfer stays invisible to lookups (default 2s)")
	f.Var(&zeroable{span{to: &o.Delay}}, "delay", "how long late and slow take (default 1s)")
	return cmd
}

func parseMix(text string) (map[sandbox.Fault]int, error) {
	if text == "" {
		return nil, nil
	}
	mix := map[sandbox.Fault]int{}
	for part := range strings.SplitSeq(text, ",") {
		name, weight, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(weight)
		if !ok || err != nil {
			return nil, usagef("--mix %q cannot be read: write FAULT=WEIGHT,..., for example drop_after=2,error_after=1", text)
		}
		mix[sandbox.Fault(strings.TrimSpace(name))] = n
	}
	return mix, nil
}

func parseRates(on []string, like sandbox.Rate) (map[sandbox.Resource]sandbox.Rate, error) {
	if len(on) == 0 {
		return nil, nil
	}
	rates := map[sandbox.Resource]sandbox.Rate{}
	for _, text := range on {
		name, part, ok := strings.Cut(text, "=")
		var first float64
		if err := (&share{to: &first}).Set(part); !ok || err != nil {
			return nil, usagef("--lose-on %q cannot be read: write RESOURCE=SHARE, for example messages=0.5", text)
		}
		rates[sandbox.Resource(name)] = sandbox.Rate{First: first, Later: like.Later, Mix: like.Mix}
	}
	return rates, nil
}

func (sh *shell) sandbox(ctx context.Context, listen string, o sandbox.Options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return usagef("--listen %s: %v", listen, err)
	}
	server, err := sandbox.New(o)
	if err != nil {
		listener.Close()
		return usagef("%v", err)
	}
	address := "http://" + listener.Addr().String()
	sh.say("a provider that loses your answers listens at %s; what really happened: %s/ledger; Ctrl-C ends it", address, address)
	if sh.json() {
		err = sh.print(map[string]string{"url": address, "ledger": o.LedgerPath})
	} else {
		err = sh.write([]byte(address + "\n"))
	}
	if err != nil {
		listener.Close()
		return err
	}
	if err := server.Run(ctx, listener); err != nil {
		return err
	}
	return server.Close()
}
