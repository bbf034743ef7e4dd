// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Verify implements driver.Kind: the packages are those of the repository, the
// module that lies there is the one that runs and the one that is wanted,
// libraries and devices are there, and the services run.
func (s *Stack) Verify(ctx context.Context, t driver.Target) (stage.Observation, driver.Installed, error) {
	none := stage.Observation{State: stage.Unknown}
	r, found, err := s.repos.Find(ctx, t.Driver, t.Node.Image.Name)
	if err != nil || !found {
		none.Evidence = "there is no whole repository to compare the node with"
		return none, driver.Installed{}, err
	}
	w, err := s.begin(nil, t, r)
	if err != nil {
		return none, driver.Installed{}, err
	}
	have, err := w.manager.Installed(ctx, slices.Sorted(maps.Keys(r.Packages)))
	if err != nil {
		return none, driver.Installed{}, err
	}
	in := driver.Installed{Packages: have}
	wrong := w.packageDifferences(have)
	held, err := w.manager.Held(ctx)
	if err != nil {
		return none, in, err
	}
	for _, name := range w.installedNames(have) {
		if !slices.Contains(held, name) {
			wrong = append(wrong, name+" is not held")
		}
	}
	version, differs, err := w.moduleDifferences(ctx, have)
	if err != nil {
		return none, in, err
	}
	if version != "" {
		in.Modules = []string{w.set.Module.Name + " " + version}
	}
	wrong = append(wrong, differs...)
	for _, look := range []func(context.Context) ([]string, error){w.libraryDifferences, w.deviceDifferences, w.serviceDifferences} {
		more, err := look(ctx)
		if err != nil {
			return none, in, err
		}
		wrong = append(wrong, more...)
	}
	if len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, in, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d packages installed as in the repository, module %s %s runs", len(have), w.set.Module.Name, version)}, in, nil
}

// packageDifferences lists packages that are missing or of another version.
func (w work) packageDifferences(have map[string]string) []string {
	var out []string
	for _, p := range w.set.Packages {
		if have[p] == "" && w.repo.Packages[p] != "" {
			out = append(out, p+" is not installed")
		}
	}
	for _, p := range slices.Sorted(maps.Keys(have)) {
		if want := w.repo.Packages[p]; !slices.Contains(strings.Fields(have[p]), want) { // several versions of the headers may be there
			out = append(out, fmt.Sprintf("%s is %s, not %s", p, have[p], want))
		}
	}
	return out
}

// moduleDifferences compares the module that runs with the one that lies there,
// and both with the version that is wanted.
func (w work) moduleDifferences(ctx context.Context, have map[string]string) (string, []string, error) {
	m := w.set.Module
	built, err := w.built(ctx)
	if err != nil {
		return "", nil, err
	}
	running, err := w.running(ctx)
	if err != nil {
		return "", nil, err
	}
	switch {
	case built.path == "" && m.Package != "":
		return running, []string{"there is no kernel module " + m.file() + " for the kernel that runs"}, nil
	case !sameVersion(m.Version, built.version):
		return running, []string{fmt.Sprintf("the kernel module %s that is loaded first is %s, and the libraries are %s", m.file(), built.version, w.libraries(have))}, nil
	case built.stray(m):
		return running, []string{fmt.Sprintf("the kernel module %s that is loaded first is %s %s, which %s did not build", m.file(), built.path, built.version, w.builder())}, nil
	}
	if text, err := w.unsigned(ctx); text != "" || err != nil {
		return running, []string{text}, err
	}
	switch {
	case running == "":
		return "", []string{"kernel module " + m.Name + " is not loaded"}, nil
	case built.path != "" && running != built.version:
		return running, []string{fmt.Sprintf("kernel module %s %s runs, and %s is installed", m.Name, running, built.version)}, nil
	}
	return running, nil, nil
}

// libraries is the version of the packages that follow the module's.
func (w work) libraries(have map[string]string) string {
	for _, p := range w.set.Packages {
		if have[p] != "" && pinnedVersion(w.set.Pins, p) != "" {
			return have[p]
		}
	}
	return "of driver " + w.Driver.Version
}

// sameVersion compares a version with the one that is wanted, or with the start of
// it, which has a dot at the end.
func sameVersion(want, have string) bool {
	return want == "" || want == have || strings.HasSuffix(want, ".") && strings.HasPrefix(have, want)
}

// pinnedVersion returns the version that the first pin wants of a package; "" when none names
// it.
func pinnedVersion(pins []repo.Pin, name string) string {
	for _, p := range pins {
		for _, glob := range p.Packages {
			if ok, err := path.Match(glob, name); err == nil && ok {
				return p.Version
			}
		}
	}
	return ""
}

func (w work) libraryDifferences(ctx context.Context) ([]string, error) {
	if len(w.set.Libraries) == 0 {
		return nil, nil
	}
	cache, err := w.query(ctx, "ldconfig", "-p")
	var out []string
	for _, l := range w.set.Libraries {
		if !strings.Contains(cache, l+" ") {
			out = append(out, "the linker does not know "+l)
		}
	}
	return out, err
}

// deviceDifferences counts the devices that the modules made.
func (w work) deviceDifferences(ctx context.Context) ([]string, error) {
	var out []string
	for _, d := range w.set.Devices {
		list, err := w.query(ctx, "ls", "-1", d.Dir)
		if err != nil {
			return out, err
		}
		n := 0
		for _, name := range strings.Fields(list) {
			if rest, ok := strings.CutPrefix(name, d.Prefix); ok && strings.Trim(rest, "0123456789") == "" && (rest != "" || d.Count == 1) {
				n++
			}
		}
		if n != d.Count {
			out = append(out, fmt.Sprintf("%d %s have a device %s/%s*, not %d", n, d.Of, d.Dir, d.Prefix, d.Count))
		}
	}
	return out, nil
}

func (w work) serviceDifferences(ctx context.Context) ([]string, error) {
	var out []string
	for _, s := range w.set.Services {
		o, err := w.on.Nodes.Run(ctx, w.Node.Name, onnode.Command{Argv: []string{"systemctl", "is-active", s + ".service"}})
		if err != nil {
			return out, fmt.Errorf("node %s: systemctl: %w", w.Node.Name, err)
		}
		if state := strings.TrimSpace(string(o.Stdout)); state != "active" {
			out = append(out, fmt.Sprintf("service %s is %q", s, state))
		}
	}
	return out, nil
}
