// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// built is a recipe whose headers are those of the image's kernel.
func built(t driver.Target, b stack.Base) (stack.Set, error) {
	s, err := recipe(t, b)
	s.Packages[0] = stack.HeadersPackage(t.Node.Image, b)
	return s, err
}

// secure is a target on hardware with Secure Boot.
func secure() driver.Target {
	t := target("1.2.3")
	t.Node.Hardware = &inventory.Hardware{SecureBoot: true}
	t.Node.Image.Kernel = "linux-image-6.1.0-56-amd64"
	return t
}

// signer is the certificate that the modules of signedRepos are signed with.
var signer = manager.Signer{Name: "ironrail modules of s", Serial: "4A:01"}

// signedRepos has the packages of a stack whose modules come signed.
type signedRepos struct{}

func (signedRepos) Ensure(context.Context, *inventory.Driver, string, func(string)) (manager.Repository, error) {
	return manager.Repository{URL: "http://c/", Kernel: "6.1.0-56-amd64", Signer: signer,
		Packages: map[string]string{"gpu-dkms": "1.2.3-1", "gpu-lib": "1.2.3-1", "ironrail-dkms": "3", "ironrail-modules-r1": "1.2.3+0"}}, nil
}

func (r signedRepos) Find(ctx context.Context, d *inventory.Driver, image string) (manager.Repository, bool, error) {
	got, err := r.Ensure(ctx, d, image, nil)
	return got, true, err
}

// signedMachine is a node that has a module with a signature.
func signedMachine(key string) *machine {
	m := newMachine()
	for field, text := range map[string]string{"filename": "/lib/modules/6.1/updates/ironrail/r1/gpu.ko", "sig_key": key, "sig_id": "PKCS#7", "signer": "somebody"} {
		if key == "" && field != "filename" {
			text = ""
		}
		m.answers["modinfo -k 6.1 -F "+field+" gpu"] = onnode.Output{Stdout: []byte(text + "\n")}
	}
	return m
}

// TestSigned: a node with Secure Boot gets its modules as a package, without headers; its
// repository has what is made for it, and one for nodes of both kinds has all.
func TestSigned(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := modsign.Create(path, "s", time.Now()); err != nil {
		t.Fatal(err)
	}
	tt, of := secure(), stack.Signed(built)
	set, err := of(tt, stack.BaseOf(tt.Node.Image))
	if want := []string{"gpu-dkms", "gpu-lib", "ironrail-modules-r1", "ironrail-dkms"}; err != nil || !slices.Equal(set.Packages, want) || !set.Module.Signed {
		t.Errorf("with Secure Boot: %q, %v", set.Packages, err)
	}
	plain := target("1.2.3")
	plain.Node.Image = tt.Node.Image
	if set, err := of(plain, stack.BaseOf(plain.Node.Image)); err != nil || len(set.Packages) != 3 || set.Module.Signed {
		t.Errorf("without: %q, %v", set.Packages, err)
	}
	plain.Node.Drivers = []*inventory.Driver{tt.Driver}
	key := func() (*modsign.Key, error) { return modsign.Load(path) }
	inv := &inventory.Inventory{Nodes: []*inventory.Node{tt.Node}}
	alone, err := stack.Select(of, inv, tt.Driver, tt.Node.Image, "", key)
	if err != nil || strings.Join(alone.Packages, " ") != "gpu-dkms gpu-lib" || !slices.Equal(alone.Made.Packages, []string{"ironrail-modules-r1", "ironrail-dkms"}) {
		t.Errorf("repository: %q, made %q: %v", alone.Packages, alone.Made.Packages, err)
	}
	inv.Nodes = append(inv.Nodes, plain.Node)
	if both, err := stack.Select(of, inv, tt.Driver, tt.Node.Image, "", key); err != nil || strings.Join(both.Packages, " ") != "gpu-dkms gpu-lib linux-headers-6.1.0-56-amd64" || both.Made.Inputs != alone.Made.Inputs {
		t.Errorf("repository of both: %q: %v", both.Packages, err)
	}
	if newer, err := stack.Select(of, inv, tt.Driver, tt.Node.Image, "6.1.0-57-amd64", key); err != nil || newer.Made.Inputs == alone.Made.Inputs {
		t.Errorf("another kernel: %q: %v", newer.Made.Inputs, err)
	}
	if _, err := stack.Select(of, inv, tt.Driver, tt.Node.Image, "", func() (*modsign.Key, error) { return modsign.Load(path + "x") }); errkind.Of(err) != errkind.NotFound {
		t.Errorf("without a key: %v", err)
	}
}

// TestSignedPlan: the plan says that modules are built and signed where a node needs it.
func TestSignedPlan(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]driver.Target{", with kernel modules that are built and signed here": secure(), "": target("1.2.3")} {
		s := driver.New(&inventory.Inventory{Nodes: []*inventory.Node{tt.Node}}, map[string]driver.Kind{"gpu": stack.New(stack.Signed(built), nil, nil)})
		steps, diags := s.Plan(onnodetest.NewRun())
		if diags.HasErrors() || len(steps) != 2 || steps[0].Title != "make the packages of driver r1 ready for image os"+want {
			t.Errorf("%v, %+v", diags, steps)
		}
	}
}

// TestSignature: a module is the stack's if the site's key signed it.
func TestSignature(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, want string }{
		"ours":     {signer.Serial, ""},
		"other":    {"4B:00", `the kernel module gpu is signed by "somebody" (key 4B:00), not by "ironrail modules of s" (key 4A:01)`},
		"unsigned": {"", "the kernel module gpu is not signed, and not the one that was built for this node"},
	} {
		m := signedMachine(c.key)
		run, k, tt := onnodetest.NewRun(), stack.New(stack.Signed(built), m, signedRepos{}), secure()
		err := k.Install(t.Context(), run, tt)
		if err == nil {
			err = k.Start(t.Context(), run, tt)
		}
		if c.want != "" {
			if len(run.Findings) != 1 || run.Findings[0].Cause != c.want {
				t.Errorf("%s: %+v: %v", name, run.Findings, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if o, _, err := k.Verify(t.Context(), tt); err != nil || o.State != "conforms" {
			t.Errorf("%s: %s (%s): %v", name, o.State, o.Evidence, err)
		}
	}
	m := signedMachine(signer.Serial)
	m.answers["modinfo -k 6.1 -F filename gpu"] = onnode.Output{Stdout: []byte("/lib/modules/6.1/updates/dkms/gpu.ko\n")}
	run := onnodetest.NewRun()
	k := stack.New(stack.Signed(built), m, signedRepos{})
	if err := k.Install(t.Context(), run, secure()); err != nil {
		t.Fatal(err)
	}
	if o, _, err := k.Verify(t.Context(), secure()); err != nil || !strings.Contains(o.Evidence, "/updates/dkms/gpu.ko 1.2.3, which ironrail-modules-r1 did not build") {
		t.Errorf("a module of DKMS: %s (%s): %v", o.State, o.Evidence, err)
	}
}

// TestRejected: what the kernel says of a signature becomes what to do about it.
func TestRejected(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"Key was rejected by service", "Required key not available", "Operation not permitted"} {
		for _, tt := range []driver.Target{secure(), target("1.2.3")} {
			m := signedMachine(signer.Serial)
			want, r := "ironrail state keys --certificate", manager.Repositories(signedRepos{})
			if tt.Node.Hardware == nil {
				m, want, r = newMachine(), "Set secure_boot = true", repos{"1.2.3"}
			}
			m.answers["modprobe gpu"] = onnode.Output{Exit: 1, Stderr: []byte("modprobe: ERROR: could not insert 'gpu': " + said + "\n")}
			run, k := onnodetest.NewRun(), stack.New(stack.Signed(built), m, r)
			if err := k.Install(t.Context(), run, tt); err != nil {
				t.Fatal(err)
			}
			err := k.Start(t.Context(), run, tt)
			if errkind.Of(err) != errkind.Mismatch || !strings.Contains(fmt.Sprint(err), "the kernel refuses module gpu") || !strings.Contains(errkind.Action(err), want) {
				t.Errorf("%s: %v (%s)", said, err, errkind.Action(err))
			}
		}
	}
}
