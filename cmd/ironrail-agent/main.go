// Command ironrail-agent is the program that runs on a node: /init of the install
// ramdisk, modprobe there, and the commands that ironrail calls on an installed
// node. Everything it does lives in provision/agent.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/provision/agent/ramdisk"
)

func main() {
	if os.Getpid() == 1 {
		ramdisk.Init(os.Stdout) // never returns
	}
	os.Exit(run(os.Args))
}

// run sorts the other ways in which the agent is called.
func run(args []string) int {
	ctx := context.Background()
	switch {
	case filepath.Base(args[0]) == "modprobe":
		if ramdisk.Modprobe(args[1:]) != nil {
			return 1 // quiet: the kernel asks for much that does not exist
		}
		return 0
	case len(args) == 2 && args[1] == ramdisk.ChildArg:
		if err := ramdisk.Main(ctx, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "ironrail:", err)
			return 1
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "usage: ironrail-agent (on a node only; ironrail calls it)")
	return 64
}
