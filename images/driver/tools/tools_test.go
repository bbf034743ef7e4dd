// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
)

const sum = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// source is the block of a program.
func source(at, checksum string) cty.Value {
	v := map[string]cty.Value{"source": cty.StringVal(at), "checksum": cty.NullVal(cty.String)}
	if checksum != "" {
		v["checksum"] = cty.StringVal(checksum)
	}
	return cty.ObjectVal(v)
}

func block(kind, name string, attrs map[string]cty.Value, packages ...string) *inventory.Driver {
	return &inventory.Driver{Block: inventory.Block{Kind: kind, Name: name, Value: cty.ObjectVal(attrs)}, Version: "1.0", Packages: packages}
}

// gpus is a stack with a toolkit for the GPUs of its node; without their model, it has none.
func gpus(t driver.Target, _ stack.Base) (stack.Set, error) {
	s := stack.Set{Packages: []string{"gpu-driver"}, Pins: []repo.Pin{{Packages: []string{"gpu-*"}, Version: "1.0-*"}}}
	if h := t.Node.Hardware; h != nil {
		s.Toolkit = &stack.Toolkit{Packages: []string{"gpu-toolkit-" + t.Driver.Text("kit")}, Home: "/opt/gpu", Library: "/usr"}
		for _, g := range h.GPUs {
			s.Toolkit.Targets = append(s.Toolkit.Targets, g.Model)
		}
	}
	return s, nil
}

var recipes = Recipes{"cuda": gpus, "rocm": gpus}

func chassis(models ...string) *inventory.Hardware {
	h := &inventory.Hardware{Name: "h"}
	for _, m := range models {
		h.GPUs = append(h.GPUs, inventory.GPU{Vendor: "nvidia", Model: m})
	}
	return h
}

func node(name string, h *inventory.Hardware, drivers ...*inventory.Driver) *inventory.Node {
	return &inventory.Node{Name: name, Image: debian, Hardware: h, Drivers: drivers}
}

var (
	debian = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Arch: inventory.AMD64}
	cuda   = block("cuda", "gpu", map[string]cty.Value{"kit": cty.StringVal("13")})
	nccl   = block(Name, "tools", map[string]cty.Value{"nccl_tests": source("https://example.com/v2.17.6.tar.gz", sum)})
)

func TestPackages(t *testing.T) {
	t.Parallel()
	doca := block("doca", "ofed", nil)
	roce := block("doca", "roce", map[string]cty.Value{"profile": cty.StringVal("doca-roce")})
	for name, c := range map[string]struct {
		n    *inventory.Node
		d    *inventory.Driver
		want string
	}{
		"plain":                {node("n", nil), block(Name, "t", nil, "iperf3=3.12-1"), "fio iperf3 openmpi-bin perftest python3-mpi4py"},
		"with the tests":       {node("n", nil, cuda), nccl, "fio openmpi-bin perftest python3-mpi4py ironrail-nccl-tests"},
		"DOCA has perftest":    {node("n", nil, doca), block(Name, "t", nil), "fio openmpi-bin python3-mpi4py"},
		"DOCA without it":      {node("n", nil, roce), block(Name, "t", nil), "fio openmpi-bin perftest python3-mpi4py"},
		"STREAM needs nothing": {node("n", nil), block(Name, "t", map[string]cty.Value{"stream": source("s.tar.gz", "")}), "fio openmpi-bin perftest python3-mpi4py ironrail-stream"},
	} {
		if got := strings.Join(Packages(driver.Target{Node: c.n, Driver: c.d}), " "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestChecksumProgram: the program of checksums needs no source, is compiled for the GPUs of
// the nodes by either stack, and never contracted; both at once are refused.
func TestChecksumProgram(t *testing.T) {
	t.Parallel()
	empty := cty.EmptyObjectVal
	for name, c := range map[string]struct {
		block string
		kit   *inventory.Driver
		want  []string
	}{
		"nvidia": {"cuda_checksum", cuda, []string{"/opt/gpu/bin/nvcc", "-fmad=false", "-gencode=arch=compute_90,code=sm_90", "gpu_checksum.cu"}},
		"amd":    {"rocm_checksum", block("rocm", "gpu", map[string]cty.Value{"kit": cty.StringVal("7")}), []string{"/opt/gpu/bin/hipcc", "-ffp-contract=off", "--offload-arch=90", "HIP_PLATFORM=amd"}},
	} {
		d := block(Name, "tools", map[string]cty.Value{c.block: empty})
		if got := New(recipes, nil, nil).Check(d); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		inv := &inventory.Inventory{Dir: "site", Nodes: []*inventory.Node{node("n1", chassis("90"), c.kit, d)}}
		got, err := Select(recipes, inv, d, debian, "")
		if err != nil || !slices.Equal(got.Made.Packages, []string{"ironrail-checksum"}) {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		for _, words := range c.want {
			if !strings.Contains(got.Made.Inputs, words) {
				t.Errorf("%s: %q is not among %s", name, words, got.Made.Inputs)
			}
		}
	}
	both := block(Name, "tools", map[string]cty.Value{"cuda_checksum": empty, "rocm_checksum": empty})
	if got := summaries(New(recipes, nil, nil).Check(both)); got != "One program for two stacks" {
		t.Error(got)
	}
}

// TestSelect: one package is compiled for the GPUs of all nodes, once.
func TestSelect(t *testing.T) {
	t.Parallel()
	inv := &inventory.Inventory{Dir: "site", Nodes: []*inventory.Node{node("n1", chassis("90"), cuda, nccl), node("n2", chassis("80", "90"), cuda, nccl), node("n3", chassis("70"), cuda)}}
	got, err := Select(recipes, inv, nccl, debian, "")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got.Packages, " ") != "fio openmpi-bin perftest python3-mpi4py" || !slices.Equal(got.Made.Packages, []string{"ironrail-nccl-tests"}) || len(got.Sources) > 0 {
		t.Errorf("%+v", got)
	}
	for _, words := range []string{"-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90", "CUDA_HOME=/opt/gpu", "MPI_HOME=/usr/lib/x86_64-linux-gnu/openmpi", "NAME_SUFFIX=_mpi", "gpu-toolkit-13", sum, "bookworm"} {
		if !strings.Contains(got.Made.Inputs, words) {
			t.Errorf("%q is not among %s", words, got.Made.Inputs)
		}
	}
	if strings.Contains(got.Made.Inputs, "70") {
		t.Errorf("compiled for a node without the block: %s", got.Made.Inputs)
	}
	other := block("cuda", "gpu12", map[string]cty.Value{"kit": cty.StringVal("12")})
	inv.Nodes[1].Drivers = []*inventory.Driver{other, nccl}
	if _, err := Select(recipes, inv, nccl, debian, ""); err == nil || !strings.Contains(err.Error(), "gpu and gpu12") {
		t.Errorf("two toolkits: %v", err)
	}
	changed := block(Name, "tools", map[string]cty.Value{"nccl_tests": source("https://example.com/v2.18.tar.gz", sum)})
	again, err := Select(recipes, &inventory.Inventory{Nodes: []*inventory.Node{node("n1", chassis("90"), cuda, changed)}}, changed, debian, "")
	if err != nil || again.Made.Inputs == got.Made.Inputs {
		t.Errorf("other sources are the same packages: %v", err)
	}
}

// TestSelectRHEL: names are RHEL's, and what is compiled finds headers and libraries of Open MPI in
// the folders that it has there.
func TestSelectRHEL(t *testing.T) {
	t.Parallel()
	image := &inventory.Image{Block: inventory.Block{Kind: "rhel", Name: "os"}, Release: "9"}
	n := node("n1", chassis("90"), cuda, nccl)
	n.Image = image
	got, err := Select(recipes, &inventory.Inventory{Dir: "site", Nodes: []*inventory.Node{n}}, nccl, image, "")
	if err != nil || strings.Join(got.Packages, " ") != "fio openmpi perftest python3-mpi4py-openmpi" {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, words := range []string{"NVCC_APPEND_FLAGS=-DOMPI_SKIP_MPICXX=1 -I/usr/include/openmpi-x86_64 -Xlinker -rpath=/usr/lib64/openmpi/lib", "MPI_HOME=/usr/lib64/openmpi", `"gcc-c++"`, `"openmpi-devel"`, "RHEL 9"} {
		if !strings.Contains(got.Made.Inputs, words) {
			t.Errorf("%q is not among %s", words, got.Made.Inputs)
		}
	}
	amd := system{family: family(t, "rhel"), arch: inventory.ARM64}
	if env := strings.Join(programs()[1].env(stack.Toolkit{Home: "/opt/rocm"}, amd), " "); !strings.Contains(env, "HIPCC_COMPILE_FLAGS_APPEND=-DOMPI_SKIP_MPICXX=1 -I/usr/include/openmpi-aarch64 HIPCC_LINK_FLAGS_APPEND=-Wl,-rpath,/usr/lib64/openmpi/lib") {
		t.Errorf("%s", env)
	}
}

// family is a distribution by its name.
func family(t *testing.T, name string) distribution.Family {
	t.Helper()
	f, ok := distribution.Find(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return f
}

func summaries(list hcl.Diagnostics) string {
	var all []string
	for _, d := range list {
		all = append(all, d.Summary)
	}
	return strings.Join(all, "; ")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	k := New(recipes, nil, nil)
	for name, c := range map[string]struct {
		attrs map[string]cty.Value
		want  string
	}{
		"nothing":          {nil, ""},
		"url":              {map[string]cty.Value{"nccl_tests": source("https://example.com/a.tar.gz", sum)}, ""},
		"file":             {map[string]cty.Value{"nccl_tests": source("sources/a.tar.gz", "")}, ""},
		"url, no checksum": {map[string]cty.Value{"nccl_tests": source("https://example.com/a.tar.gz", "")}, "Source without a checksum"},
		"empty":            {map[string]cty.Value{"stream": source(" ", "")}, "No source"},
		"git":              {map[string]cty.Value{"stream": source("git://example.com/a", sum)}, "Source that cannot be fetched"},
		"no host":          {map[string]cty.Value{"stream": source("https:///a.tar.gz", sum)}, "Source that cannot be fetched"},
		"password":         {map[string]cty.Value{"stream": source("https://u:p@example.com/a.tar.gz", sum)}, "Password in a source"},
		"two libraries":    {map[string]cty.Value{"nccl_tests": source("a.tar.gz", ""), "rccl_tests": source("b.tar.gz", "")}, "Tests of two libraries in one driver"},
	} {
		if got := summaries(k.Check(block(Name, "t", c.attrs))); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	k := New(recipes, nil, nil)
	rhel := node("n", chassis("90"), cuda, nccl)
	rhel.Image = &inventory.Image{Block: inventory.Block{Kind: "rhel", Name: "os"}, Release: "9"}
	unknown := node("n", chassis("90"), cuda, nccl)
	unknown.Image = &inventory.Image{Block: inventory.Block{Kind: "oci", Name: "os"}}
	for name, c := range map[string]struct {
		n    *inventory.Node
		want string
	}{
		"all there":        {node("n", chassis("90"), cuda, nccl), ""},
		"no driver":        {node("n", chassis("90"), nccl), "Program for a stack that is not there"},
		"no toolkit":       {node("n", nil, cuda, nccl), "Nothing to compile with"},
		"GPUs not known":   {node("n", chassis(), cuda, nccl), "GPUs that are not known"},
		"before the stack": {node("n", chassis("90"), nccl, cuda), "Tools before the stacks that they use"},
		"RHEL":             {rhel, ""},
		"not known":        {unknown, "System without packages of programs"},
	} {
		got := k.Fits(driver.Target{Node: c.n, Driver: nccl})
		if summaries(got) != c.want {
			t.Errorf("%s: %q", name, summaries(got))
		}
	}
}

// stock is a repository that is there.
type stock map[string]string

func (s stock) Ensure(context.Context, *inventory.Driver, string, func(string)) (manager.Repository, error) {
	return manager.Repository{URL: "http://10.0.0.1/repo/tools-os/", Packages: s}, nil
}

func (s stock) Find(ctx context.Context, d *inventory.Driver, image string) (manager.Repository, bool, error) {
	r, err := s.Ensure(ctx, d, image, nil)
	return r, len(s) > 0, err
}

func TestVerify(t *testing.T) {
	t.Parallel()
	have := stock{"openmpi-bin": "4.1.4-3", "perftest": "4.5", "fio": "3.33", "python3-mpi4py": "3.1", "libibverbs1": "44.0", "ironrail-nccl-tests": "2.17.6+0123456789abcdef"}
	status := func(versions stock) string {
		text := ""
		for name, v := range versions {
			text += name + "\t" + v + "\tinstalled\n"
		}
		return text
	}
	with := func(name, version string) stock {
		s := stock{name: version}
		for n, v := range have {
			if n != name {
				s[n] = v
			}
		}
		return s
	}
	for name, c := range map[string]struct {
		repo  stock
		there stock
		ldd   string
		exit  int
		state stage.Conformity
		says  string
	}{
		"all there":               {have, have, "\tlibnccl.so.2 => /lib/libnccl.so.2 (0x0)\n", 0, stage.Conforms, "6 packages"},
		"libraries of another":    {have, with("libibverbs1", "2507mlnx58"), "", 0, stage.Conforms, ""},
		"another version":         {have, with("ironrail-nccl-tests", "2.17.6+ffff"), "", 0, stage.Differs, "ironrail-nccl-tests is 2.17.6+ffff, not 2.17.6+0123456789abcdef"},
		"without the library":     {have, have, "\tlibnccl.so.2 => not found\n", 0, stage.Differs, "/usr/bin/all_reduce_perf_mpi does not find libnccl.so.2"},
		"without the program":     {have, have, "", 1, stage.Differs, "/usr/bin/all_reduce_perf_mpi does not start"},
		"there is no repository":  {nil, have, "", 0, stage.Unknown, "no whole repository"},
		"not there":               {have, stock{}, "", 0, stage.Differs, "openmpi-bin is not installed"},
		"brought in by the image": {with("fio", ""), with("fio", "3.30"), "", 0, stage.Conforms, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := &onnodetest.Nodes{Rules: []onnodetest.Rule{onnodetest.On("dpkg-query", status(c.there), 0), onnodetest.On("ldd /usr/bin/all_reduce_perf_mpi", c.ldd, c.exit)}}
			o, in, err := New(recipes, nodes, c.repo).Verify(t.Context(), driver.Target{Node: node("n1", chassis("90"), cuda, nccl), Driver: nccl})
			if err != nil || o.State != c.state || !strings.Contains(o.Evidence, c.says) || c.state != stage.Unknown && len(in.Packages) == 0 && len(c.there) > 0 {
				t.Errorf("%+v %+v: %v", o, in, err)
			}
		})
	}
}
