// Command fiber is a shop behind Fiber's idempotency middleware as it comes,
// for the probe to look at: an implementation of keys that is not ours.
//
// It prints its address, and ends with its standard input. POST /charges makes a
// charge, and answers one without an amount by a status; POST /refunds makes a
// refund under the same middleware, and returns an error instead. GET /ledger
// counts what really happened.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
)

func main() {
	config := idempotency.Config{}
	flag.DurationVar(&config.Lifetime, "lifetime", 0, "how long a key is kept (default 30m)")
	pause := flag.Duration("pause", 0, "how long a charge takes")
	flag.Parse()
	if err := serve(config, *pause); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(config idempotency.Config, pause time.Duration) error {
	var mu sync.Mutex
	effects := map[string]int{}
	refuseByStatus := func(c fiber.Ctx) error {
		return c.Status(fiber.StatusBadRequest).JSON(fiber.Map{"message": "amount is missing"})
	}
	refuseByError := func(fiber.Ctx) error { return fiber.NewError(fiber.StatusBadRequest, "amount is missing") }
	makes := func(kind string, refuse fiber.Handler) fiber.Handler {
		return func(c fiber.Ctx) error {
			var order struct {
				Amount    int    `json:"amount"`
				Reference string `json:"reference"`
			}
			if err := c.Bind().Body(&order); err != nil || order.Amount == 0 {
				return refuse(c)
			}
			time.Sleep(pause)
			mu.Lock()
			defer mu.Unlock()
			effects[order.Reference]++
			total := 0
			for _, n := range effects {
				total += n
			}
			return c.Status(fiber.StatusCreated).JSON(fiber.Map{"id": fmt.Sprintf("%s_%d", kind, total), "amount": order.Amount})
		}
	}
	app := fiber.New()
	app.Use(idempotency.New(config))
	app.Post("/charges", makes("ch", refuseByStatus))
	app.Post("/refunds", makes("re", refuseByError))
	app.Get("/ledger", func(c fiber.Ctx) error {
		mu.Lock()
		defer mu.Unlock()
		return c.JSON(effects)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true})
}
