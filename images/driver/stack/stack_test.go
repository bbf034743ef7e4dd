// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// recipe is a stack with one module that is built on the node.
func recipe(t driver.Target, _ stack.Base) (stack.Set, error) {
	return stack.Set{
		Packages: []string{"linux-headers-6.1", "gpu-dkms", "gpu-lib"},
		Pins:     []repo.Pin{{Packages: []string{"gpu-*"}, Version: t.Driver.Version + "-*"}},
		Module:   stack.Module{Name: "gpu", Version: t.Driver.Version, Package: "gpu-dkms"},
		Others:   []string{"gpu_uvm"}, Clashing: []string{"oldgpu"}, Services: []string{"gpud"}, Libraries: []string{"libgpu.so.1"},
		Devices: []stack.Device{{Dir: "/dev", Prefix: "gpu", Count: 2, Of: "GPUs"}},
	}, nil
}

// machine is a node with a kernel, as far as a driver stack looks at it.
type machine struct {
	onnodetest.Nodes
	installed map[string]string
	half      string // package that is unpacked only
	modules   map[string]string
	busy      bool // modules cannot be taken out
	boots     int
	held      []string
	build     string // what the compiler says; "": it builds
	answers   map[string]onnode.Output
}

func newMachine() *machine {
	m := &machine{installed: map[string]string{}, modules: map[string]string{"oldgpu": ""}, answers: map[string]onnode.Output{}}
	m.Rules = []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		if out, ok := m.answers[c.Line()]; ok {
			return out, nil, true
		}
		out, ok := m.run(c)
		return out, nil, ok
	}}
	return m
}

func yes(text string) (onnode.Output, bool) { return onnode.Output{Stdout: []byte(text)}, true }
func no() (onnode.Output, bool)             { return onnode.Output{Exit: 1}, true }

func (m *machine) run(c onnodetest.Call) (onnode.Output, bool) {
	line := c.Line()
	switch arg := c.Argv[len(c.Argv)-1]; {
	case strings.Contains(line, "apt-get") && strings.Contains(line, " install "):
		return m.install(c.Argv)
	case strings.HasPrefix(line, "dpkg-query"):
		text := ""
		for name, v := range m.installed {
			state := "installed"
			if name == m.half {
				state = "half-configured"
			}
			text += name + "\t" + v + "\t" + state + "\n"
		}
		return yes(text)
	case line == "apt-mark showhold":
		return yes(strings.Join(m.held, "\n") + "\n")
	case strings.HasPrefix(line, "apt-mark hold "):
		m.held = append(m.held, c.Argv[2:]...)
		return yes("")
	case strings.HasPrefix(line, "apt-mark unhold "):
		m.held = slices.DeleteFunc(m.held, func(n string) bool { return slices.Contains(c.Argv[2:], n) })
		return yes("")
	case line == "uname -r":
		return yes("6.1\n")
	case strings.HasPrefix(line, "modinfo") && m.installed["gpu-dkms"] != "" && m.half == "":
		if strings.Contains(line, "filename") {
			return yes("/lib/modules/6.1/updates/dkms/gpu.ko\n")
		}
		version, _, _ := strings.Cut(m.installed["gpu-dkms"], "-")
		return yes(version + "\n")
	case strings.HasPrefix(line, "modinfo"):
		return no()
	case strings.HasPrefix(line, "test -d /sys/module/"):
		if _, ok := m.modules[strings.TrimPrefix(arg, "/sys/module/")]; ok {
			return yes("")
		}
		return no()
	case line == "cat /sys/module/gpu/version":
		return yes(m.modules["gpu"] + "\n")
	case strings.HasPrefix(line, "modprobe -r "):
		if m.busy {
			return no()
		}
		delete(m.modules, arg)
		return yes("")
	case strings.HasPrefix(line, "modprobe "):
		if _, ok := m.modules[arg]; !ok {
			m.modules[arg], _, _ = strings.Cut(m.installed["gpu-dkms"], "-")
		}
		return yes("")
	case line == "cat /proc/sys/kernel/random/boot_id":
		return yes(fmt.Sprintf("boot%d\n", m.boots))
	case line == "systemctl reboot":
		m.boots++
		m.modules = map[string]string{}
		return yes("")
	case strings.HasPrefix(line, "systemctl is-active"):
		return yes("active\n")
	case line == "ldconfig -p":
		return yes("\tlibgpu.so.1 (libc6,x86-64) => /lib/libgpu.so.1\n")
	case line == "ls -1 /dev":
		return yes("gpu\ngpu0\ngpu1\ngpuctl\nnull\n")
	case strings.HasPrefix(line, "find /var/lib/dkms") && m.build != "":
		return yes("/var/lib/dkms/gpu/1/build/make.log\n")
	case strings.HasPrefix(line, "tail "):
		return yes(m.build)
	case strings.HasPrefix(line, "cat /etc/"):
		if b, ok := m.File(c.Node, arg); ok {
			return yes(string(b))
		}
		return no()
	}
	for _, p := range []string{"env ", "apt-mark ", "systemctl ", "update-initramfs ", "groupadd ", "find "} {
		if strings.HasPrefix(line, p) {
			return yes("")
		}
	}
	return onnode.Output{}, false
}

func (m *machine) install(argv []string) (onnode.Output, bool) {
	if slices.Contains(m.held, "gpu-lib") {
		return onnode.Output{Exit: 100, Stderr: []byte("E: Unable to correct problems, you have held broken packages.\n")}, true
	}
	for _, w := range argv[slices.Index(argv, "install"):] {
		if name, version, ok := strings.Cut(w, "="); ok && !strings.HasPrefix(w, "-") && !strings.Contains(w, "::") {
			m.installed[name] = version
		}
	}
	if m.build != "" {
		m.half = "gpu-dkms"
		return onnode.Output{Exit: 100, Stderr: []byte("E: Sub-process /usr/bin/dpkg returned an error code (1)\n")}, true
	}
	m.half = ""
	return yes("")
}

// repos has the packages of one version.
type repos struct{ version string }

func (r repos) Ensure(context.Context, *inventory.Driver, string, func(string)) (manager.Repository, error) {
	return manager.Repository{URL: "http://c/", Packages: map[string]string{"linux-headers-6.1": "6.1-1", "gpu-dkms": r.version + "-1", "gpu-lib": r.version + "-1", "gcc": "12"}}, nil
}

func (r repos) Find(ctx context.Context, d *inventory.Driver, image string) (manager.Repository, bool, error) {
	got, err := r.Ensure(ctx, d, image, nil)
	return got, true, err
}

func target(version string) driver.Target {
	d := &inventory.Driver{Block: inventory.Block{Kind: "gpu", Name: "r1"}, Version: version}
	return driver.Target{Driver: d, Node: &inventory.Node{Name: "n1", Drivers: []*inventory.Driver{d}, Image: &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}}}
}

// bring installs and starts a version, and verifies it.
func bring(t *testing.T, m *machine, version string) (*onnodetest.Run, error) {
	t.Helper()
	run, k, tt := onnodetest.NewRun(), stack.New(recipe, m, repos{version}), target(version)
	if err := k.Install(t.Context(), run, tt); err != nil {
		return run, err
	}
	if err := k.Start(t.Context(), run, tt); err != nil {
		return run, err
	}
	if o, in, err := k.Verify(t.Context(), tt); err != nil || o.State != "conforms" || in.Packages["gpu-lib"] != version+"-1" {
		t.Errorf("%s: %s (%s), %+v: %v", version, o.State, o.Evidence, in, err)
	}
	return run, nil
}

// TestInstall: settings come before packages, packages before holds, and modules
// before services; what clashes is taken out.
func TestInstall(t *testing.T) {
	t.Parallel()
	m := newMachine()
	if _, err := bring(t, m, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, c := range m.Calls("") {
		for _, mark := range []string{"update-initramfs", " install ", "apt-mark hold gpu-dkms gpu-lib linux-headers-6.1", "modprobe -r oldgpu", "modprobe gpu_uvm", "systemctl enable gpud.service", "systemctl restart gpud.service"} {
			if strings.Contains(c.Line(), mark) {
				order = append(order, mark)
			}
		}
	}
	want := []string{"update-initramfs", " install ", "apt-mark hold gpu-dkms gpu-lib linux-headers-6.1", "modprobe -r oldgpu", "modprobe gpu_uvm", "systemctl enable gpud.service", "systemctl restart gpud.service"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q", order)
	}
	for file, text := range map[string]string{
		"/etc/modprobe.d/ironrail-r1.conf": "blacklist oldgpu\noptions oldgpu modeset=0\n", "/etc/modules-load.d/ironrail-r1.conf": "gpu\ngpu_uvm\n",
		"/etc/apt/preferences.d/ironrail-r1.pref": "Pin: version 1.2.3-*", "/etc/apt/apt.conf.d/52ironrail-r1": `"^gpu-.*$";`,
	} {
		if b, _ := m.File("n1", file); !strings.Contains(string(b), text) {
			t.Errorf("%s: %q", file, b)
		}
	}
	again := len(m.Calls("update-initramfs"))
	if _, err := bring(t, m, "1.2.3"); err != nil || len(m.Calls("update-initramfs")) != again {
		t.Errorf("a second time: %v", err)
	}
}

// TestVersionsMove: up and down, by taking modules out, or, where they are in use,
// by one restart.
func TestVersionsMove(t *testing.T) {
	t.Parallel()
	m := newMachine()
	for i, version := range []string{"1.2.3", "1.3.0", "1.2.3"} {
		m.busy = i == 2
		run, err := bring(t, m, version)
		if err != nil || m.modules["gpu"] != version {
			t.Errorf("%s: module %s: %v", version, m.modules["gpu"], err)
		}
		if restarts := len(run.Effects); (restarts == 1) != m.busy || m.boots != restarts {
			t.Errorf("%s: %d effects, %d restarts", version, restarts, m.boots)
		}
	}
}

// TestUnbuilt: a module that does not build is a finding with the compiler's words.
func TestUnbuilt(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.build = "make: Entering directory\nnv-pci.c:223:5: error: too few arguments to function 'pci_resize_resource'\nmake: *** [Makefile:82: modules] Error 2\n"
	run, err := bring(t, m, "1.2.3")
	if errkind.Of(err) == errkind.Internal || len(run.Findings) != 1 {
		t.Fatalf("%+v: %v", run.Findings, err)
	}
	f := run.Findings[0]
	if f.Suspects[0].Part != "driver r1" || f.Cause != "gpu-dkms did not build the kernel module gpu for kernel 6.1: too few arguments to function 'pci_resize_resource'" || len(f.Evidence) != 2 {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(f.Evidence[0], "gpu-dkms") {
		t.Errorf("evidence %q", f.Evidence)
	}
}

// TestVerify: each way in which a node may differ is said.
func TestVerify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		do         func(*machine)
	}{
		{"package", "gpu-lib is 0.9-1, not 1.2.3-1", func(m *machine) { m.installed["gpu-lib"] = "0.9-1" }},
		{"absent", "gpu-lib is not installed", func(m *machine) { delete(m.installed, "gpu-lib") }},
		{"not held", "gpu-lib is not held", func(m *machine) { m.held = []string{"gpu-dkms", "linux-headers-6.1", "administrators-own"} }},
		{"running", "kernel module gpu 1.0.0 runs, and 1.2.3 is installed", func(m *machine) { m.modules["gpu"] = "1.0.0" }},
		{"not loaded", "kernel module gpu is not loaded", func(m *machine) { delete(m.modules, "gpu") }},
		{"devices", "1 GPUs have a device /dev/gpu*, not 2", func(m *machine) { m.answers["ls -1 /dev"] = onnode.Output{Stdout: []byte("gpu0\n")} }},
		{"service", `service gpud is "failed"`, func(m *machine) {
			m.answers["systemctl is-active gpud.service"] = onnode.Output{Stdout: []byte("failed\n"), Exit: 3}
		}},
		{"library", "the linker does not know libgpu.so.1", func(m *machine) { m.answers["ldconfig -p"] = onnode.Output{} }},
		{"stray", "/lib/modules/6.1/updates/gpu.ko 1.2.3, which gpu-dkms did not build", func(m *machine) {
			m.answers["modinfo -k 6.1 -F filename gpu"] = onnode.Output{Stdout: []byte("/lib/modules/6.1/updates/gpu.ko\n")}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			if _, err := bring(t, m, "1.2.3"); err != nil {
				t.Fatal(err)
			}
			c.do(m)
			o, _, err := stack.New(recipe, m, repos{"1.2.3"}).Verify(t.Context(), target("1.2.3"))
			if err != nil || o.State != "differs" || !strings.Contains(o.Evidence, c.want) {
				t.Errorf("%s %q: %v", o.State, o.Evidence, err)
			}
		})
	}
}

// TestServiceFails: the service's own words are evidence.
func TestServiceFails(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.answers["systemctl restart gpud.service"] = onnode.Output{Exit: 1, Stderr: []byte("Job for gpud.service failed\n")}
	m.answers["journalctl --no-pager --lines=40 --unit=gpud"] = onnode.Output{Stdout: []byte("version mismatch\n")}
	run, err := bring(t, m, "1.2.3")
	if errkind.Of(err) != errkind.Mismatch || !strings.Contains(fmt.Sprint(err), "service gpud does not start") || len(run.Evidence) != 1 {
		t.Errorf("%v, %d pieces of evidence", err, len(run.Evidence))
	}
}

// TestPlan: such a step may restart its node, and comes after the stack before it.
func TestPlan(t *testing.T) {
	t.Parallel()
	tt := target("1.2.3")
	first := &inventory.Driver{Block: inventory.Block{Kind: "doca", Name: "first"}, Version: "1"}
	tt.Node.Drivers = []*inventory.Driver{first, tt.Driver}
	k := stack.New(recipe, nil, nil)
	s := driver.New(&inventory.Inventory{Nodes: []*inventory.Node{tt.Node}}, map[string]driver.Kind{"gpu": k, "doca": k})
	steps, diags := s.Plan(onnodetest.NewRun())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, st := range steps {
		if st.ID != "n1/drivers.r1" {
			continue
		}
		i := slices.IndexFunc(st.Needs, func(n plan.Need) bool { return n.Step == "n1/drivers.first" })
		if i < 0 || !st.Needs[i].Triggers || !st.May.Has(plan.Power) {
			t.Errorf("%+v", st)
		}
		return
	}
	t.Error("there is no such step")
}
