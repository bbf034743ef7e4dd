// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Apt is apt and dpkg with one source only.
type Apt struct{ On }

func (a Apt) list() string { return "/etc/apt/sources.list.d/ironrail-" + a.Source + ".list" }
func (a Apt) key() string  { return "/etc/apt/keyrings/ironrail-" + a.Source + ".asc" }
func (a Apt) preferences() string {
	return "/etc/apt/preferences.d/ironrail-" + a.Source + ".pref"
}
func (a Apt) unattended() string { return "/etc/apt/apt.conf.d/52ironrail-" + a.Source }

// Configure implements Manager. apt reads an armoured key when its file ends in
// .asc (apt-secure(8), apt 1.4 and later).
func (a Apt) Configure(ctx context.Context, r Repository) error {
	if err := onnode.Write(ctx, a.Nodes, a.Node, a.key(), 0o644, r.ArmoredKey); err != nil {
		return err
	}
	line := fmt.Sprintf("deb [signed-by=%s] %s ./\n", a.key(), r.URL)
	return onnode.Write(ctx, a.Nodes, a.Node, a.list(), 0o644, []byte(line))
}

// Pin implements Manager: preferences for apt itself, and the list of what
// unattended-upgrades leaves alone, whose entries are regular expressions.
func (a Apt) Pin(ctx context.Context, pins []repo.Pin) error {
	if err := onnode.Write(ctx, a.Nodes, a.Node, a.preferences(), 0o644, repo.Preferences(pins)); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("Unattended-Upgrade::Package-Blacklist {\n")
	for _, p := range pins {
		for _, name := range p.Packages {
			fmt.Fprintf(&b, "\t\"^%s$\";\n", strings.NewReplacer(".", `\\.`, "+", `\\+`, "*", ".*").Replace(name))
		}
	}
	b.WriteString("};\n")
	return onnode.Write(ctx, a.Nodes, a.Node, a.unattended(), 0o644, []byte(b.String()))
}

// Refresh implements Manager.
func (a Apt) Refresh(ctx context.Context) error { return a.get(ctx, "update") }

// Install implements Manager.
func (a Apt) Install(ctx context.Context, r Repository, names []string) error {
	args := []string{"install", "--yes", "--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages", "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"}
	for _, name := range names {
		if version := r.Packages[name]; version != "" {
			name += "=" + version
		}
		args = append(args, name)
	}
	return a.get(ctx, args...)
}

// Hold implements Manager.
func (a Apt) Hold(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	err := onnode.Exec(ctx, a.Nodes, a.Node, append([]string{"apt-mark", "hold"}, names...)...)
	return err
}

// Held implements Manager.
func (a Apt) Held(ctx context.Context) ([]string, error) {
	out, err := a.query(ctx, 0, "apt-mark", "showhold")
	return strings.Fields(string(out)), err
}

// Release implements Manager.
func (a Apt) Release(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	err := onnode.Exec(ctx, a.Nodes, a.Node, append([]string{"apt-mark", "unhold"}, names...)...)
	return err
}

// lockTries and lockPause bound the wait for another apt, such as the first
// run of the distribution's own timers: four minutes beside apt's own wait.
const (
	lockTries = 24
	lockPause = 10 * time.Second
)

// get runs apt-get with this source alone. apt itself waits for dpkg's lock but
// not for that of its lists, so a lock that is taken is tried again.
func (a Apt) get(ctx context.Context, args ...string) error {
	argv := append([]string{
		"env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get", "--quiet=2",
		"-o", "Dir::Etc::sourcelist=" + a.list(), "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0",
		"-o", "APT::Update::Error-Mode=any", "-o", "DPkg::Lock::Timeout=120",
		"-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=30", "-o", "Acquire::http::Proxy=DIRECT",
	}, args...)
	fixed := false
	for try := 1; ; try++ {
		err := onnode.Exec(ctx, a.Nodes, a.Node, argv...)
		ee, ended := errors.AsType[*onnode.ExitError](err)
		switch {
		case ended && !fixed && isInterrupted(ee.Text()):
			fixed = true
			if err := a.finish(ctx); err != nil {
				return err
			}
			continue
		case err == nil:
			return nil
		case !ended:
			return err
		case isLocked(ee.Text()) && try < lockTries:
			if err := a.Run.Clock().Sleep(ctx, lockPause); err != nil {
				return err
			}
			continue
		}
		return a.failed(args[0], ee)
	}
}

// isInterrupted recognises apt's words for a dpkg that was killed, as by a power loss
// (apt 2.6, apt-pkg/deb/debsystem.cc).
func isInterrupted(text []byte) bool { return strings.Contains(string(text), "dpkg was interrupted") }

// finish has dpkg configure what it was killed at.
func (a Apt) finish(ctx context.Context) error {
	err := onnode.Exec(ctx, a.Nodes, a.Node, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C",
		"dpkg", "--configure", "--pending", "--force-confdef", "--force-confold")
	if ee, ended := errors.AsType[*onnode.ExitError](err); ended {
		return a.failure("dpkg-configure", ee, "Read the attached output of dpkg, then apply again.")
	}
	return err
}

// isLocked recognises apt's words for a lock that another process holds (apt
// 2.6, apt-pkg/contrib/fileutl.cc).
func isLocked(text []byte) bool {
	s := string(text)
	return strings.Contains(s, "Could not get lock") || strings.Contains(s, "Unable to acquire the dpkg frontend lock")
}

func (a Apt) failed(what string, ee *onnode.ExitError) error {
	action := "Read the attached output of apt-get, then apply again."
	if isLocked(ee.Text()) {
		action = "Another package manager holds the lock on the node: see which with `fuser -v /var/lib/dpkg/lock-frontend`, then apply again."
	}
	return a.failure("apt-get-"+what, ee, action)
}

// Installed implements Manager. dpkg-query ends with status 1 when it does not
// know a package; what it does know it prints.
func (a Apt) Installed(ctx context.Context, names []string) (map[string]string, error) {
	out, err := a.query(ctx, 1, append([]string{"dpkg-query", "--show", "--showformat=${Package}\t${Version}\t${db:Status-Status}\n", "--"}, names...)...)
	return parseInstalled(out), err
}

// Unfinished implements Manager.
func (a Apt) Unfinished(ctx context.Context) ([]string, error) {
	out, err := a.query(ctx, 0, "dpkg-query", "--show", "--showformat=${Package}\t${Version}\t${db:Status-Status}\n")
	return parseUnfinished(out), err
}

// parseInstalled reads name, version and status, split by tabs, a line each.
func parseInstalled(b []byte) map[string]string {
	have := map[string]string{}
	for f := range eachStatus(b) {
		if f[0] != "" && f[1] != "" && f[2] == "installed" {
			have[f[0]] = f[1]
		}
	}
	return have
}

// unfinished are the states of dpkg(1) between unpacked and installed.
var unfinished = []string{"half-installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending"}

// parseUnfinished reads the same lines, for packages that are there in part.
func parseUnfinished(b []byte) []string {
	var names []string
	for f := range eachStatus(b) {
		if slices.Contains(unfinished, f[2]) {
			names = append(names, f[0])
		}
	}
	return names
}

// eachStatus yields the lines that have three fields.
func eachStatus(b []byte) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(string(b)) {
			if f := strings.Split(strings.TrimRight(line, "\n"), "\t"); len(f) == 3 && !yield(f) {
				return
			}
		}
	}
}
