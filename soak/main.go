package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./soak DIR, where DIR is what `make soak` left")
		os.Exit(2)
	}
	e, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	v := judge(e)
	v.print(os.Stdout)
	if !v.passed() {
		os.Exit(1)
	}
}
