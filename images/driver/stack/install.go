// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/compile"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Install implements driver.Kind: settings of the kernel, then packages at their
// versions, then holds. Nothing of it runs yet: Start does that.
func (s *Stack) Install(ctx context.Context, run stage.Run, t driver.Target) error {
	say := func(text string) { run.Emit(event.Event{Type: event.StepProgress, Node: t.Node.Name, Text: text}) }
	r, err := s.repos.Ensure(ctx, t.Driver, t.Node.Image.Name, say)
	if err != nil {
		return fmt.Errorf("repository of driver %s for image %s: %w", t.Driver.Name, t.Node.Image.Name, err)
	}
	w, err := s.begin(run, t, r)
	if err != nil {
		return err
	}
	if err := w.settings(ctx); err != nil {
		return err
	}
	say("reading the package lists")
	if err := w.pin(ctx); err != nil {
		return err
	}
	how := "kernel modules are built"
	if w.set.Module.Signed {
		how = "kernel modules come built and signed"
	}
	say(fmt.Sprintf("installing %d packages; %s", len(w.set.Packages), how))
	if err := w.release(ctx); err != nil {
		return err
	}
	if err := w.install(ctx); err != nil {
		return errkind.Begun(err)
	}
	return errkind.Begun(w.hold(ctx))
}

func (w work) modprobeFile() string { return "/etc/modprobe.d/ironrail-" + w.Driver.Name + ".conf" }

// keepOut writes what keeps clashing modules out of initrds, where the settings of modprobe do
// not, and reports whether it was another.
func (w work) keepOut(ctx context.Context) (bool, error) {
	if w.family.Boot.Omit == nil || len(w.set.Clashing) == 0 {
		return false, nil
	}
	o := w.family.Boot.Omit
	return w.write(ctx, fmt.Sprintf(o.File, w.Driver.Name), []string{fmt.Sprintf(o.Line, strings.Join(w.set.Clashing, " "))})
}

func (w work) loadFile() string { return "/etc/modules-load.d/ironrail-" + w.Driver.Name + ".conf" }

// settings writes what modules are loaded and how. The initial file system of the
// kernel has these files as well, and is made anew when they changed.
func (w work) settings(ctx context.Context) error {
	var lines []string
	for _, m := range w.set.Clashing {
		lines = append(lines, "blacklist "+m, "options "+m+" modeset=0")
	}
	lines = append(lines, w.set.Options...)
	changed, err := w.write(ctx, w.modprobeFile(), lines)
	if err != nil {
		return err
	}
	omitted, err := w.keepOut(ctx)
	if err != nil {
		return err
	}
	if _, err := w.write(ctx, w.loadFile(), append([]string{w.set.Module.Name}, w.set.Others...)); err != nil {
		return err
	}
	for _, g := range w.set.Groups {
		if err := onnode.Exec(ctx, w.on.Nodes, w.Node.Name, "groupadd", "--force", "--system", g); err != nil {
			return err
		}
	}
	if !changed && !omitted || len(w.set.Clashing) == 0 {
		return nil
	}
	return onnode.Exec(ctx, w.on.Nodes, w.Node.Name, w.family.Boot.RemakeInitrds...)
}

// write writes a file of lines unless it is so already, and reports whether it was
// another.
func (w work) write(ctx context.Context, file string, lines []string) (bool, error) {
	text := strings.Join(lines, "\n") + "\n"
	was, err := w.on.Nodes.Run(ctx, w.Node.Name, onnode.Command{Argv: []string{"cat", file}})
	if err != nil {
		return false, fmt.Errorf("node %s: read %s: %w", w.Node.Name, file, err)
	}
	if was.Exit == 0 && string(was.Stdout) == text {
		return false, nil
	}
	return true, onnode.Write(ctx, w.on.Nodes, w.Node.Name, file, 0o644, []byte(text))
}

// pin makes the versions of this stack the only ones that count on the node.
func (w work) pin(ctx context.Context) error {
	if err := w.manager.Configure(ctx, w.repo); err != nil {
		return err
	}
	if err := w.manager.Pin(ctx, w.set.Pins); err != nil {
		return err
	}
	return w.manager.Refresh(ctx)
}

// install brings the packages. One whose module does not build is a finding about
// the node with the compiler's own words.
func (w work) install(ctx context.Context) error {
	err := w.manager.Install(ctx, w.repo, w.set.Packages)
	if err != nil && errkind.Of(err) != errkind.Refused {
		return err
	}
	unfinished, uerr := w.manager.Unfinished(ctx)
	if uerr != nil {
		return errors.Join(err, uerr)
	}
	m, merr := w.built(ctx)
	if merr != nil {
		return errors.Join(err, merr)
	}
	switch built := m.path != "" || w.set.Module.Package == ""; {
	case !built && (err == nil || slices.Contains(unfinished, w.set.Module.Package)):
		return errors.Join(w.unbuilt(ctx, unfinished), err)
	case err == nil && len(unfinished) > 0:
		return errkind.New(errkind.Refused, "packages are unpacked and not configured: %s", strings.Join(unfinished, ", ")).
			Do("See why with `dpkg --configure -a` on the node, then apply again.")
	}
	return err
}

// unbuilt is the finding that the module of a stack does not build.
func (w work) unbuilt(ctx context.Context, unfinished []string) error {
	kernel, err := w.kernel(ctx)
	if err != nil {
		return err
	}
	m := w.set.Module
	if m.Signed {
		return driver.Blame(ctx, w.on.Run, w.Target, fmt.Sprintf("%s has no kernel module %s for kernel %s, which the node runs", w.builder(), m.file(), kernel), []string{"unpacked and not configured: " + strings.Join(unfinished, ", ")},
			fmt.Sprintf("Build the image and its drivers again (`ironrail image build %s`) and reinstall the node: `ironrail rebuild %s`.", w.Node.Image.Name, w.Node.Name))
	}
	cause := fmt.Sprintf("%s did not build the kernel module %s for kernel %s", m.Package, m.file(), kernel)
	evidence := []string{"unpacked and not configured: " + strings.Join(unfinished, ", ")}
	if len(unfinished) == 0 {
		evidence = []string{"there is no module " + m.file() + " for kernel " + kernel}
	}
	log, err := w.makeLog(ctx)
	if err != nil {
		return err
	}
	if reason := compile.FirstError(log); reason != "" {
		cause += ": " + reason
	}
	if len(log) > 0 {
		ref, err := w.on.Run.Attach("make.log", log)
		if err != nil {
			return err
		}
		evidence = append(evidence, ref)
	}
	return driver.Blame(ctx, w.on.Run, w.Target, cause, evidence,
		"Take a version of driver "+w.Driver.Name+" that knows this kernel, or a kernel that it knows (the image's kernel attribute), then run `ironrail apply`.")
}

// dkmsTree is where dkms(8) builds.
const dkmsTree = "/var/lib/dkms"

// makeLog is the end of what the compiler said of the last build that failed; nil
// when there is none.
func (w work) makeLog(ctx context.Context) ([]byte, error) {
	list, err := w.query(ctx, "find", dkmsTree, "-path", "*/build/make.log")
	if err != nil || len(strings.Fields(list)) == 0 {
		return nil, err
	}
	logs := strings.Fields(list)
	slices.Sort(logs)
	log, err := w.query(ctx, "tail", "-n", "200", path.Clean(logs[len(logs)-1]))
	return []byte(log), err
}

// query is the standard output of a program, whatever its exit status is.
func (w work) query(ctx context.Context, argv ...string) (string, error) {
	out, err := w.on.Nodes.Run(ctx, w.Node.Name, onnode.Command{Argv: argv})
	if err != nil {
		return "", fmt.Errorf("node %s: %s: %w", w.Node.Name, argv[0], err)
	}
	if out.Exit != 0 {
		return "", nil
	}
	return strings.TrimSpace(string(out.Stdout)), nil
}

// kernel is the release that runs on the node.
func (w work) kernel(ctx context.Context) (string, error) {
	out, err := onnode.Do(ctx, w.on.Nodes, w.Node.Name, "uname", "-r")
	return strings.TrimSpace(string(out)), err
}

// file is a module's file for the running kernel.
type file struct {
	path    string // "": there is none
	version string // inTree for modules that have none
}

// stray reports whether the file of a module is none that a package of the stack brought:
// one that no build of DKMS made, or, where they come signed, one from elsewhere.
func (f file) stray(m Module) bool {
	switch {
	case m.Package == "" || f.path == "":
		return false
	case m.Signed:
		return !strings.Contains(f.path, "/"+compile.ModulesFolder(""))
	}
	return !strings.Contains(f.path, "/dkms/") && !strings.Contains(f.path, "/extra/")
}

// built is the file that lies there for the running kernel. The kernel's own is not
// the one that a package builds.
func (w work) built(ctx context.Context) (file, error) {
	kernel, err := w.kernel(ctx)
	if err != nil {
		return file{}, err
	}
	m := w.set.Module
	at, err := w.query(ctx, "modinfo", "-k", kernel, "-F", "filename", m.file())
	if err != nil || at == "" || m.Package != "" && strings.Contains(at, "/kernel/") {
		return file{}, err
	}
	version, err := w.query(ctx, "modinfo", "-k", kernel, "-F", "version", m.file())
	if version == "" {
		version = inTree
	}
	return file{at, version}, err
}

// inTree stands for the version of modules that have none.
const inTree = "in-tree"

// ours reports whether a package is held with the stack: those that are asked for,
// with the headers, those that a pin names, and those that are listed.
func (w work) ours(name string) bool {
	if w.family.StandBeside(name) {
		return false
	}
	return slices.Contains(w.set.Packages, name) || pinnedVersion(w.set.Pins, name) != "" || pinnedVersion([]repo.Pin{{Packages: w.set.Holds, Version: "*"}}, name) != ""
}

// release lets go of what an earlier version held. Whoever is killed before the next
// hold is found by Verify.
func (w work) release(ctx context.Context) error {
	held, err := w.manager.Held(ctx)
	if err != nil {
		return err
	}
	return w.manager.Release(ctx, slices.DeleteFunc(held, func(n string) bool { return !w.ours(n) }))
}

// installedNames are the packages of the stack that are installed, sorted.
func (w work) installedNames(have map[string]string) (names []string) {
	for name := range have {
		if w.ours(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hold keeps every package of the stack at what it is.
func (w work) hold(ctx context.Context) error {
	have, err := w.manager.Installed(ctx, slices.Sorted(maps.Keys(w.repo.Packages)))
	if err != nil {
		return err
	}
	return w.manager.Hold(ctx, w.installedNames(have))
}
