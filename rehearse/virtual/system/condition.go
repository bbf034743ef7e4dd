// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"io/fs"
	"strconv"
)

// runTest is test(1) with one, two or three operands.
func runTest(_ context.Context, c call) int {
	argv := c.Argv[1:]
	if c.name() == "[" {
		if len(argv) == 0 || argv[len(argv)-1] != "]" {
			c.fail("missing ]")
			return 2
		}
		argv = argv[:len(argv)-1]
	}
	not := false
	for len(argv) > 1 && argv[0] == "!" {
		not, argv = !not, argv[1:]
	}
	yes, known := c.holds(argv)
	if !known {
		c.fail("unexpected operator")
		return 2
	}
	if yes != not {
		return 0
	}
	return 1
}

func (c call) holds(argv []string) (yes, known bool) {
	switch len(argv) {
	case 0:
		return false, true
	case 1:
		return argv[0] != "", true
	case 2:
		return c.unary(argv[0], argv[1])
	case 3:
		return evalBinary(argv[0], argv[1], argv[2])
	}
	return false, false
}

func (c call) unary(op, arg string) (yes, known bool) {
	switch op {
	case "-n":
		return arg != "", true
	case "-z":
		return arg == "", true
	case "-L", "-h":
		i, err := c.n.tree.Lstat(c.path(arg))
		return err == nil && i.Mode()&fs.ModeSymlink != 0, true
	}
	i, err := c.n.tree.Stat(c.path(arg))
	switch op {
	case "-e", "-r", "-w":
		return err == nil, true
	case "-f":
		return err == nil && i.Mode().IsRegular(), true
	case "-d":
		return err == nil && i.IsDir(), true
	case "-s":
		return err == nil && i.Size() > 0, true
	case "-x":
		return err == nil && (i.IsDir() || i.Mode()&0o111 != 0), true
	}
	return false, false
}

func evalBinary(a, op, b string) (yes, known bool) {
	switch op {
	case "=", "==":
		return a == b, true
	case "!=":
		return a != b, true
	}
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil {
		return false, false
	}
	switch op {
	case "-eq":
		return x == y, true
	case "-ne":
		return x != y, true
	case "-lt":
		return x < y, true
	case "-le":
		return x <= y, true
	case "-gt":
		return x > y, true
	case "-ge":
		return x >= y, true
	}
	return false, false
}
