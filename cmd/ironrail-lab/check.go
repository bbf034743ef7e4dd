// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ironrail/ironrail/examples/lab"
	"github.com/ironrail/ironrail/internal/errkind"
)

// installTimeout bounds apt-get; the packages are some 200 MB.
const installTimeout = 20 * time.Minute

// runCheck compares the list with what dpkg says is installed.
func runCheck(ctx context.Context, c *cli, args []string) error {
	f := c.flags("check")
	all := f.Bool("all", false, "also the packages that only tests need")
	install := f.Bool("install", false, "install what is missing; needs root")
	if _, err := parseFlags(f, args, 0); err != nil {
		return err
	}
	want, err := wantedPackages(*all)
	if err != nil {
		return err
	}
	installed, err := dpkgInstalled(ctx)
	if err != nil {
		return err
	}
	missing := lackingPackages(want, installed)
	if len(missing) == 0 {
		fmt.Fprintf(c.stderr, "all %d packages are installed\n", len(want))
		return nil
	}
	for _, p := range missing {
		fmt.Fprintf(c.stdout, "%s\t%s\n", p.Name, p.Why)
	}
	line := aptLine(missing)
	if !*install {
		return errkind.New(errkind.Unsupported, "%d packages are missing", len(missing)).Do("run as root: apt-get " + strings.Join(line, " "))
	}
	return c.install(ctx, line)
}

// wantedPackages returns the packages of the list that are needed for this use.
func wantedPackages(all bool) ([]lab.Package, error) {
	ps, err := lab.Packages()
	if err != nil || all {
		return ps, err
	}
	var out []lab.Package
	for _, p := range ps {
		if p.Use == lab.Lab {
			out = append(out, p)
		}
	}
	return out, nil
}

// lackingPackages keeps the packages that are not installed.
func lackingPackages(want []lab.Package, installed map[string]bool) []lab.Package {
	var out []lab.Package
	for _, p := range want {
		if !installed[p.Name] {
			out = append(out, p)
		}
	}
	return out
}

// aptLine is the one line that installs them.
func aptLine(ps []lab.Package) []string {
	line := []string{"install", "--yes", "--no-install-recommends"}
	for _, p := range ps {
		line = append(line, p.Name)
	}
	return line
}

func dpkgInstalled(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat", "${Package}\t${db:Status-Status}\n").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errkind.New(errkind.Unsupported, "this system has no dpkg-query").Do("the lab is made for Debian 12")
	}
	if err != nil {
		return nil, fmt.Errorf("dpkg-query: %w", err)
	}
	return parseDpkg(string(out)), nil
}

func parseDpkg(out string) map[string]bool {
	installed := map[string]bool{}
	for line := range strings.Lines(out) {
		if name, status, _ := strings.Cut(strings.TrimSpace(line), "\t"); status == "installed" {
			installed[name] = true
		}
	}
	return installed
}

// install runs apt-get; its talk goes to stderr.
func (c *cli) install(ctx context.Context, line []string) error {
	if os.Geteuid() != 0 {
		return errkind.New(errkind.Refused, "--install needs root").Do("run as root: apt-get " + strings.Join(line, " "))
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	for _, args := range [][]string{{"update"}, line} {
		if err := c.aptGet(ctx, args); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}

// aptGet runs apt-get, and again while another package manager holds a lock: apt
// waits by itself for the locks of dpkg alone (DPkg::Lock::Timeout), not for those of
// its lists and of its archives (apt 2.6).
func (c *cli) aptGet(ctx context.Context, args []string) error {
	for reported := false; ; {
		var errs bytes.Buffer
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-o", fmt.Sprintf("DPkg::Lock::Timeout=%d", int(installTimeout.Seconds()))}, args...)...)
		cmd.WaitDelay = 5 * time.Second
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
		cmd.Stdout, cmd.Stderr = c.stderr, io.MultiWriter(&errs, c.stderr)
		if reported {
			cmd.Stderr = &errs // it would say the same each time
		}
		err := cmd.Run()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errkind.New(errkind.Timeout, "%w; it said: %s", context.Cause(ctx), strings.TrimSpace(errs.String())).
				Do("wait until the other package manager has ended, then try again")
		case !strings.Contains(errs.String(), "Could not get lock"):
			if reported {
				_, _ = c.stderr.Write(errs.Bytes())
			}
			return err
		}
		if !reported {
			fmt.Fprintln(c.stderr, "another package manager holds this lock; waiting for it")
			reported = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPause):
		}
	}
}

// lockPause is between two tries to get a lock of apt.
const lockPause = time.Second
