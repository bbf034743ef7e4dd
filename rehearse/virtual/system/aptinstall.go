// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore ST1005 these are the words of the programs that are simulated

package system

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// install installs packages named as NAME or NAME=VERSION, with what they need of
// the same repositories.
func (a aptRun) install(ctx context.Context, words []string) int {
	sources, bad := a.sources()
	if bad != nil {
		return a.fail(bad...)
	}
	all, from := index{}, map[string]source{}
	for _, s := range sources {
		sum, err := a.n.tree.ReadFile(s.mark())
		if err != nil {
			continue // never updated: its packages are not known
		}
		have, _ := a.n.cfg.Site.lists.of(string(sum))
		for name, p := range have {
			all[name], from[name] = p, s
		}
	}
	todo, bad := a.choose(all, words)
	if bad != nil {
		return a.fail(bad...)
	}
	if len(todo) == 0 {
		return 0
	}
	// One question a package that was asked for says whether the files are there.
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		if _, fresh := todo[name]; !fresh {
			continue
		}
		at := from[name].url(all[name].file)
		if _, err := a.fetch(ctx, http.MethodHead, at, 0); err != nil {
			if ctx.Err() != nil {
				return 137
			}
			return a.fail(fmt.Sprintf("Failed to fetch %s  %v", at, err), "Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?")
		}
	}
	if bad := a.forbidden(todo, words); bad != "" {
		return a.fail(bad)
	}
	if a.n.cfg.Clock.Sleep(ctx, time.Duration(len(todo))*perPackage) != nil {
		return 137 // killed in the middle: dpkg would go on where it was
	}
	signer := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		signer = cmp.Or(all[name].signer, signer)
	}
	return a.configure(ctx, todo, signer)
}

// forbidden says why apt would not do it without being told to. What is held and
// only needed by others stays, whatever it is told.
func (a aptRun) forbidden(todo map[string]string, words []string) string {
	have, held := a.n.packages(), a.n.heldPackages()
	for _, name := range slices.Sorted(maps.Keys(todo)) {
		named := slices.ContainsFunc(words, func(w string) bool { return w == name || strings.HasPrefix(w, name+"=") })
		switch {
		case have[name] != "" && held[name] && !named:
			return "Unable to correct problems, you have held broken packages."
		case have[name] != "" && held[name] && !a.flags["--allow-change-held-packages"]:
			return "Held packages were changed and -y was used without --allow-change-held-packages."
		case have[name] != "" && isOlder(versionNumbers(todo[name]), versionNumbers(have[name])) && !a.flags["--allow-downgrades"]:
			return "Packages were downgraded and -y was used without --allow-downgrades."
		}
	}
	return ""
}

// configure unpacks packages and configures them; one whose module does not build
// stays unpacked, and so do all that are left when it is killed. signer is whose modules come
// built and signed; "": DKMS builds them.
func (a aptRun) configure(ctx context.Context, todo map[string]string, signer string) int {
	err := a.n.add(todo)
	a.n.place()
	if err != nil {
		_, _ = fmt.Fprintf(a.Err, "dpkg: error: %v\nE: Sub-process /usr/bin/dpkg returned an error code (2)\n", err)
		return aptFailure
	}
	var failed []string
	names := slices.Sorted(maps.Keys(todo))
	for i, name := range names {
		a.print(fmt.Sprintf("Setting up %s (%s) ...\n", name, todo[name]))
		if _, ok := sourceOf(name); ok && !a.n.build(ctx, a.call, name, todo[name], signer) {
			failed = append(failed, name)
		}
		if ctx.Err() != nil {
			_ = a.n.unfinished(names[i:])
			return 137
		}
	}
	if err := a.n.unfinished(failed); err != nil || len(failed) > 0 {
		return a.fail("Sub-process /usr/bin/dpkg returned an error code (1)")
	}
	return 0
}

// choose returns the versions of all packages that are to be installed.
func (a aptRun) choose(all index, words []string) (map[string]string, []string) {
	have, todo := a.n.packages(), map[string]string{}
	var complaints []string
	var add func(name string)
	add = func(name string) {
		p, ok := all[name]
		if _, twice := todo[name]; twice || !ok || have[name] == p.version && !a.n.isUnfinished(name) {
			return // what no repository has is part of the image
		}
		todo[name] = p.version
		for _, d := range p.depends {
			add(d)
		}
	}
	for _, w := range words {
		name, version, pinned := strings.Cut(w, "=")
		p, ok := all[name]
		switch {
		case !ok && !pinned && have[name] != "":
		case !ok:
			complaints = append(complaints, "Unable to locate package "+name)
		case pinned && p.version != version:
			complaints = append(complaints, fmt.Sprintf("Version '%s' for '%s' was not found", version, name))
		default:
			add(name)
		}
	}
	return todo, complaints
}
