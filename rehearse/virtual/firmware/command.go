// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/inventory"
)

// command runs one command.
func (s *shell) command(ctx context.Context, w []string) error {
	if len(w) == 0 {
		return nil
	}
	args := w[1:]
	switch w[0] {
	case "echo":
		s.b.printf("%s", strings.Join(args, " "))
		return nil
	case "set":
		return s.set(args)
	case "inc":
		return s.inc(args)
	case "iseq":
		return s.iseq(args)
	case "goto":
		return s.jump(args)
	case "sleep":
		return s.sleep(ctx, args)
	case "exit":
		return s.exit(args)
	case "imgfree":
		s.kernel, s.initrd = nil, tail{}
		return nil
	case "kernel":
		return s.loadKernel(ctx, args)
	case "initrd":
		return s.loadInitrd(ctx, args)
	case "boot":
		return s.boot(ctx)
	case "sanboot":
		return s.sanboot(ctx, args)
	}
	return fmt.Errorf("%s: %w", w[0], errUnknown)
}

func (s *shell) set(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	name, _, _ := strings.Cut(args[0], ":") // the type of a setting changes how it is shown only
	s.vars[name] = strings.Join(args[1:], " ")
	return nil
}

func (s *shell) inc(args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	n, err := strconv.Atoi(s.vars[args[0]])
	if err != nil {
		n = 0
	}
	s.vars[args[0]] = strconv.Itoa(n + 1)
	return nil
}

func (s *shell) iseq(args []string) error {
	switch {
	case len(args) != 2:
		return errUsage
	case args[0] != args[1]:
		return errFalse
	}
	return nil
}

func (s *shell) jump(args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	for i, l := range s.lines {
		if strings.TrimSpace(l) == ":"+args[0] {
			s.at = i
			return nil
		}
	}
	return fmt.Errorf("no label %s", args[0])
}

func (s *shell) sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	n, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil {
		return errUsage
	}
	return s.b.cfg.Clock.Sleep(ctx, time.Duration(n)*time.Second)
}

func (s *shell) exit(args []string) error {
	s.done = true
	if len(args) > 0 && args[0] != "0" {
		s.code = fmt.Errorf("exit %s", args[0])
	}
	return nil
}

// cutName takes --name and its argument off.
func cutName(args []string) (url string, rest []string, err error) {
	for len(args) >= 2 && args[0] == "--name" {
		args = args[2:]
	}
	if len(args) == 0 {
		return "", nil, errUsage
	}
	return args[0], args[1:], nil
}

func (s *shell) loadKernel(ctx context.Context, args []string) error {
	url, rest, err := cutName(args)
	if err != nil {
		return err
	}
	var h head
	if _, _, err = fetchURL(ctx, s.net, http.MethodGet, url, agentIPXE, &h); err != nil {
		return s.failed(ctx, url, err)
	}
	s.b.printf("%s... ok, %d bytes", url, h.n)
	s.kernel = &Kernel{Cmdline: strings.Join(rest, " "), Kernel: h.b, KernelSize: h.n}
	return nil
}

func (s *shell) loadInitrd(ctx context.Context, args []string) error {
	url, _, err := cutName(args)
	if err != nil {
		return err
	}
	s.initrd.pad()
	_, n, err := fetchURL(ctx, s.net, http.MethodGet, url, agentIPXE, &s.initrd)
	if err != nil {
		s.initrd = tail{}
		return s.failed(ctx, url, err)
	}
	s.b.printf("%s... ok, %d bytes", url, n)
	return nil
}

// failed says why a file could not be had.
func (s *shell) failed(ctx context.Context, url string, err error) error {
	s.b.complain(ctx, "%s... %v", url, err)
	return err
}

// boot hands the node to the kernel; it comes back only when there is none.
func (s *shell) boot(ctx context.Context) error {
	if s.kernel == nil || s.kernel.KernelSize == 0 {
		return errors.New("exec format error: no kernel")
	}
	k := *s.kernel
	k.Initrd, k.InitrdSize = s.initrd.last(), s.initrd.n
	k.Address, k.MAC = s.address, s.mac
	s.kernel, s.initrd = nil, tail{}
	s.done, s.result = true, s.b.hand(ctx, k)
	return nil
}

// sanboot boots the first disk of a BIOS.
func (s *shell) sanboot(ctx context.Context, args []string) error {
	if s.how != inventory.BootBIOS || len(args) < 2 || args[len(args)-2] != "--drive" || args[len(args)-1] != "0x80" {
		return errUsage
	}
	s.b.printf("Booting from SAN device 0x80")
	r := s.b.disk(ctx)
	if !r.booted {
		s.b.cfg.Chassis.SetPhase("BootLoader")
		return errors.New("no such device")
	}
	s.done, s.result = true, r
	return nil
}
