// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// runEnv runs a program with further variables, or prints them.
func runEnv(ctx context.Context, c call) int {
	vars := map[string]string{}
	for k, v := range c.Env {
		vars[k] = v
	}
	argv := c.Argv[1:]
	for len(argv) > 0 {
		name, value, ok := strings.Cut(argv[0], "=")
		if !ok {
			return c.run(ctx, argv, vars)
		}
		vars[name] = value
		argv = argv[1:]
	}
	for k, v := range vars {
		c.print(k + "=" + v + "\n")
	}
	return 0
}

// runTimeout runs a program for a bounded time; 124 says that it was ended. What it
// bounds may wait for another node or for the controller, which are no faster
// where hardware is: like every deadline of I/O it is one on the wall.
func runTimeout(ctx context.Context, c call) int {
	argv := c.Argv[1:]
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
		skip := 1
		if argv[0] == "-k" || argv[0] == "-s" {
			skip = 2
		}
		argv = argv[min(skip, len(argv)):]
	}
	if len(argv) < 2 {
		c.fail("missing operand")
		return 125
	}
	limit, err := parseDuration(argv[0])
	if err != nil {
		c.fail("invalid time interval '" + argv[0] + "'")
		return 125
	}
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	status := c.run(bound, argv[1:], c.Env)
	if bound.Err() != nil && ctx.Err() == nil {
		return 124
	}
	return status
}

// parseDuration reads 5, 1.5, 10s or 2m.
func parseDuration(s string) (time.Duration, error) {
	if s != "" && strings.IndexByte("smhd", s[len(s)-1]) < 0 {
		s += "s"
	}
	if d, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(d)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(s)
	if d < 0 {
		err = strconv.ErrRange
	}
	return d, err
}

func runSleep(ctx context.Context, c call) int {
	if len(c.Argv) < 2 {
		return c.fail("missing operand")
	}
	d, err := parseDuration(c.Argv[1])
	if err != nil {
		return c.fail("invalid time interval '" + c.Argv[1] + "'")
	}
	if c.n.cfg.Clock.Sleep(ctx, d) != nil {
		return 137
	}
	return 0
}

// runKill knows -9, -KILL, -s KILL and -0, for process groups.
func runKill(_ context.Context, c call) int {
	argv := c.Argv[1:]
	probe := false
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") && argv[0] != "--" {
		if argv[0] == "-s" && len(argv) > 1 {
			argv = argv[1:]
		}
		probe = probe || argv[0] == "-0"
		argv = argv[1:]
	}
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	status := 0
	for _, a := range argv {
		pid, err := strconv.Atoi(strings.TrimPrefix(a, "-"))
		if err != nil || !probe && !c.n.procs.signal(pid) {
			status = c.fail("(" + a + ") - No such process")
		}
	}
	return status
}
