// SPDX-License-Identifier: Apache-2.0

// Command generate writes the list that the site beside it is made from: as many
// nodes as asked for, eight in a rack.
//
//	go run ./examples/csv-12500/generate -nodes 12500 >examples/csv-12500/nodes-12500.csv
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/ironrail/ironrail/examples/csv-12500/nodes"
)

func main() {
	count := flag.Int("nodes", 12500, "how many nodes")
	flag.Parse()
	if err := nodes.Write(os.Stdout, *count); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
