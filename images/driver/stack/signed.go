// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/compile"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// buildsModules reports whether the modules of a node are built on the controller: it boots with Secure
// Boot, so that they are signed, or it keeps its system in memory, and would build them at each start. For
// systems of dnf, and for arm64, nothing builds them there.
func buildsModules(n *inventory.Node) bool {
	if f, ok := distribution.FamilyOf(n.Image); ok && f.Manager == distribution.Dnf || n.Image.Arch == inventory.ARM64 {
		return false
	}
	return n.Hardware != nil && n.Hardware.SecureBoot || n.Diskless()
}

// Signed makes of a recipe one whose modules are, for nodes that boot with Secure Boot or keep
// their system in memory, built and signed on the controller: the node gets them as a package, with one
// that stands for dkms(8), and neither headers nor a compiler.
func Signed(recipe Recipe) Recipe {
	return func(t driver.Target, b Base) (Set, error) {
		s, err := recipe(t, b)
		if err != nil || s.Module.Package == "" || !buildsModules(t.Node) {
			return s, err
		}
		headers := HeadersPackage(t.Node.Image, b)
		s.Packages = slices.DeleteFunc(slices.Clone(s.Packages), func(p string) bool { return p == headers })
		s.Packages = append(s.Packages, signedPackages(t.Driver)...)
		s.Module.Signed = true
		return s, nil
	}
}

// Signs implements driver.Signing.
func (s *Stack) Signs(t driver.Target) bool {
	if !buildsModules(t.Node) {
		return false
	}
	set, err := s.recipe(t, BaseOf(t.Node.Image))
	return err == nil && set.Module.Signed
}

// signedPackages are those that are made on the controller for a block.
func signedPackages(d *inventory.Driver) []string {
	return []string{compile.ModulesPackage(d.Name), compile.DKMSPackage}
}

// sign adds what is built and signed to a selection.
func (s *Selection) sign(d *inventory.Driver, image *inventory.Image, b Base, signer Signer) error {
	key, err := signer()
	if err != nil {
		return err
	}
	arch := image.Arch
	if arch == "" {
		arch = inventory.AMD64
	}
	family, _ := distribution.Find(b.System.Family)
	root := compile.Root{Suite: family.Codename(b.System), Arch: arch, Sources: s.Sources, Components: s.Components, Pins: s.Pins}
	of := compile.Modules{Driver: d.Name, Kernel: b.Kernel, Headers: HeadersPackage(image, b), Key: key}
	made := signedPackages(d)
	s.Packages = slices.DeleteFunc(s.Packages, func(p string) bool { return slices.Contains(made, p) })
	s.Made = repo.Made{Packages: made, Signer: key.Serial(), Inputs: fmt.Sprintf("%q %q %q %q %q", root.Suite, arch, of.Kernel, of.Headers, key.Fingerprint()),
		Make: func(ctx context.Context, dir string, from repo.Image, debs []string, say func(string)) ([]string, error) {
			root.Image = from
			return compile.BuildModules(ctx, dir, root, of, debs, say)
		}}
	return nil
}

// builder is the package that the module of a stack is from.
func (w work) builder() string {
	if w.set.Module.Signed {
		return compile.ModulesPackage(w.Driver.Name)
	}
	return w.set.Module.Package
}

// unsigned is what is wrong with the signature of a module's file; "" where it is right, or
// where none is asked for.
func (w work) unsigned(ctx context.Context) (string, error) {
	m := w.set.Module
	if !m.Signed || w.repo.Signer.Serial == "" {
		return "", nil
	}
	kernel, err := w.kernel(ctx)
	if err != nil {
		return "", err
	}
	by, err := w.query(ctx, "modinfo", "-k", kernel, "-F", "sig_key", m.file())
	switch {
	case err != nil || by == w.repo.Signer.Serial:
		return "", err
	case by == "":
		kind, err := w.query(ctx, "modinfo", "-k", kernel, "-F", "sig_id", m.file())
		if err != nil || kind != "" { // signed, and a kmod without OpenSSL cannot say by whom
			return "", err
		}
		return fmt.Sprintf("the kernel module %s is not signed, and not the one that was built for this node", m.file()), nil
	}
	name, err := w.query(ctx, "modinfo", "-k", kernel, "-F", "signer", m.file())
	return fmt.Sprintf("the kernel module %s is signed by %q (key %s), not by %q (key %s)", m.file(), name, by, w.repo.Signer.Name, w.repo.Signer.Serial), err
}

// refusesSignature reports whether modprobe(8) says that the kernel refuses a module for its
// signature: EKEYREJECTED for a wrong one; ENOKEY, or in lockdown EPERM, for none and for one
// by a key that it does not have.
func refusesSignature(err error) bool {
	ee, ok := errors.AsType[*onnode.ExitError](err)
	if !ok {
		return false
	}
	text := string(ee.Text())
	return strings.Contains(text, "Key was rejected by service") || strings.Contains(text, "Required key not available") || strings.Contains(text, "Operation not permitted")
}

// rejected is what to do about a module that the kernel refuses for its signature.
func (w work) rejected(module string, err error) error {
	if !w.set.Module.Signed {
		return errkind.New(errkind.Mismatch, "the kernel refuses module %s, which no key that it trusts has signed: %w", module, err).
			Do("Set secure_boot = true in the hardware of " + w.Node.Name + ", so that modules are signed; or switch Secure Boot off in its firmware.")
	}
	return errkind.New(errkind.Mismatch, "the kernel refuses module %s: %w", module, err).
		Do(fmt.Sprintf("Enrol the certificate %q of this site (`ironrail state keys --certificate pem`) in db of the node's firmware, or in its MOK list; then restart the node and apply again.", w.repo.Signer.Name))
}
