// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package compile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/images/modsign/mok"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// sh runs a program and returns what it prints.
func sh(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// release is a release of Debian that modules are built for.
type release struct {
	suite, kernel string // release of its kernel
	image         repo.Image
	debs          string   // folder of the packages
	names         []string // of them, with their folder
}

// fetchRelease is a release with its kernel, loaders and a package with sources.
func fetchRelease(t *testing.T, suite string) release {
	t.Helper()
	r := release{suite: suite, image: controller(t), debs: t.TempDir()}
	if err := os.WriteFile(r.image.Sources, []byte("deb "+mirror+" "+suite+" main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	archive := repo.Source{URL: mirror, Suite: suite, Components: []string{"main"}}
	fetch := func(names ...string) []string {
		debs, err := repo.Download(t.Context(), t.TempDir(), "amd64", r.image.Keyring, []repo.Source{archive}, names...)
		if err != nil {
			t.Fatal(err)
		}
		return debs
	}
	needs := sh(t, "", "dpkg-deb", "--field", fetch("linux-headers-amd64")[0], "Depends")
	r.kernel = regexp.MustCompile(`linux-headers-([0-9][^ ,]+)`).FindStringSubmatch(needs)[1]
	for _, deb := range fetch("acpi-call-dkms", "dkms", "linux-image-"+r.kernel, "busybox-static", "shim-signed", "shim-helpers-amd64-signed", "grub-efi-amd64-signed") {
		sh(t, "", "cp", deb, r.debs)
		r.names = append(r.names, filepath.Join(r.debs, filepath.Base(deb)))
	}
	return r
}

// siteKey is a key in a file.
func siteKey(t *testing.T, name string) *modsign.Key {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := modsign.Create(path, name, time.Now()); err != nil {
		t.Fatal(err)
	}
	k, err := modsign.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestPeerModules builds the module of a package of Debian 12 and 13 by DKMS in a jail, and signs it.
// kmod names the signer; apt installs the packages where dkms was, and builds nothing. Then
// Debian's kernel, started by OVMF with Microsoft's keys, shim and GRUB, and locked down, loads
// the module where the certificate is in db or in shim's list, also where MokManager has put it
// there, and refuses it where it is in neither; it always refuses the same unsigned, and signed with another key.
func TestPeerModules(t *testing.T) {
	peertest.Need(t, "modinfo", "apt-get")
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			of := fetchRelease(t, suite)
			key, dir, began := siteKey(t, "peer"), t.TempDir(), time.Now()
			r := Root{Suite: suite, Arch: inventory.AMD64, Image: of.image}
			m := Modules{Driver: "gpu", Kernel: of.kernel, Headers: "linux-headers-" + of.kernel, Key: key}
			made, err := BuildModules(t.Context(), dir, r, m, of.names, func(text string) { t.Log(text) })
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("made in %.0f s", time.Since(began).Seconds())
			t.Log(sh(t, "", "dpkg-deb", "--info", made[0]), sh(t, "", "dpkg-deb", "--contents", made[0]), sh(t, "", "dpkg-deb", "--info", made[1]))
			tree := t.TempDir()
			sh(t, "", "dpkg-deb", "-x", made[0], tree)
			module := filepath.Join(tree, "usr/lib/modules", of.kernel, "updates/ironrail/gpu/acpi_call.ko")
			info := sh(t, "", "modinfo", module)
			if t.Log(info); !strings.Contains(info, key.Name()) || !strings.Contains(info, key.Serial()) || !strings.Contains(info, "sha256") || !strings.Contains(info, "PKCS#7") {
				t.Errorf("modinfo does not name %q, %s", key.Name(), key.Serial())
			}
			sources := of.names[slices.IndexFunc(of.names, func(n string) bool { return strings.Contains(n, "acpi-call") })]
			installsWithoutBuild(t, filepath.Join(dir, "root"), of.kernel, append(made, sources))
			loads(t, of.debs, module, key)
		})
	}
}

// installsWithoutBuild installs packages with apt in a root file system that has dkms.
func installsWithoutBuild(t *testing.T, root, kernel string, debs []string) {
	t.Helper()
	for i, deb := range debs {
		sh(t, "", "cp", deb, filepath.Join(root, filepath.Base(deb)))
		debs[i] = "/" + filepath.Base(deb)
	}
	said := sh(t, "", append([]string{"chroot", root, "apt-get", "install", "--yes", "--no-install-recommends"}, debs...)...)
	if t.Log(said); strings.Contains(said, "Building module") || strings.Contains(said, "DKMS") {
		t.Error("something is built")
	}
	if have := sh(t, "", "chroot", root, "dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n"); strings.Contains(have, "\ndkms installed") || !strings.Contains(have, "acpi-call-dkms installed") || !strings.Contains(have, "ironrail-modules-gpu installed") {
		t.Errorf("installed:\n%s", have)
	}
	if at := sh(t, "", "chroot", root, "modinfo", "-k", kernel, "-F", "filename", "acpi_call"); !strings.HasSuffix(strings.TrimSpace(at), "/updates/ironrail/gpu/acpi_call.ko") {
		t.Errorf("the module that is found is %s", at)
	}
}

// initScript tries the modules and says what the kernel does.
const initScript = `#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t securityfs securityfs /sys/kernel/security
echo "LOCKDOWN $(/bin/busybox cat /sys/kernel/security/lockdown)"
for m in unsigned other ours; do
	if said=$(/bin/busybox insmod /$m.ko 2>&1); then echo "MODULE $m loaded"; /bin/busybox rmmod acpi_call; else echo "MODULE $m refused: $said"; fi
done
echo "MOKTABLE $(/bin/busybox od -An -tx1 -N16 /sys/firmware/efi/mok-variables/MokListRT)"
/bin/busybox dmesg | /bin/busybox grep -iE "module|x.509|lockdown"
echo "END of test"
/bin/busybox poweroff -f
`

// loads boots a machine with Secure Boot that tries a module in three forms.
func loads(t *testing.T, debs, module string, key *modsign.Key) {
	t.Helper()
	const code, vars = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"
	peertest.Need(t, "qemu-system-x86_64", code, "mkfs.vfat", "mcopy", "mmd", "cpio")
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	for _, name := range []string{"linux-image", "busybox", "shim-signed", "shim-helpers", "grub"} {
		found, err := filepath.Glob(filepath.Join(debs, name+"*.deb"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		sh(t, "", "dpkg-deb", "-x", found[0], tree)
	}
	initrd := filepath.Join(dir, "initrd")
	put := func(name string, b []byte) {
		at := filepath.Join(initrd, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, b, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	ours := content(t, module)
	unsigned, err := modsign.Strip(ours)
	if err != nil {
		t.Fatal(err)
	}
	other, err := siteKey(t, "peer").Sign(unsigned) // of the same name
	if err != nil {
		t.Fatal(err)
	}
	put("init", []byte(initScript))
	busybox, err := filepath.Glob(filepath.Join(tree, "*", "busybox"))
	if more, _ := filepath.Glob(filepath.Join(tree, "usr/bin/busybox")); err != nil || len(busybox)+len(more) != 1 {
		t.Fatalf("busybox: %v, %v, %v", busybox, more, err)
	} else {
		busybox = append(busybox, more...)
	}
	put("bin/busybox", content(t, busybox[0]))
	put("ours.ko", ours)
	put("unsigned.ko", unsigned)
	put("other.ko", other)
	for _, d := range []string{"proc", "sys", "dev"} {
		if err := os.MkdirAll(filepath.Join(initrd, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, initrd, "sh", "-c", "find . | cpio --quiet -o -H newc >../initrd.img")
	disk := filepath.Join(dir, "disk")
	sh(t, dir, "sh", "-c", `set -e; truncate -s 128M disk; mkfs.vfat disk; mmd -i disk ::/EFI ::/EFI/BOOT ::/EFI/debian; printf 'linux /vmlinuz console=ttyS0 panic=-1 quiet\ninitrd /initrd.img\nboot\n' >grub.cfg; mcopy -i disk grub.cfg ::/EFI/debian/grub.cfg; mcopy -i disk initrd.img ::/initrd.img; mcopy -i disk tree/boot/vmlinuz-* ::/vmlinuz; mcopy -i disk tree/usr/lib/shim/shimx64.efi.signed ::/EFI/BOOT/BOOTX64.EFI; mcopy -i disk tree/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed ::/EFI/BOOT/grubx64.efi; mcopy -i disk tree/usr/lib/shim/mmx64.efi.signed ::/EFI/BOOT/mmx64.efi`)
	request := mok.NewRequest(key.DER())
	for name, c := range map[string]struct {
		edit     func(*varStore)
		password string // that MokManager asks for; "": it does not come
		want     string
	}{
		"in db": {func(s *varStore) {
			s.set(t, "db", imageDatabase, 0x27, append(s.get(t, "db"), signatureList(key.DER())...))
		}, "", "MODULE ours loaded"},
		"in MokList": {func(s *varStore) { s.set(t, "MokList", shimLock, 3, signatureList(key.DER())) }, "", "MODULE ours loaded"},
		"in neither": {func(*varStore) {}, "", "MODULE ours refused"},
		"enrolled by MokManager": {func(s *varStore) {
			s.set(t, "MokNew", shimLock, 7, request.New)
			s.set(t, "MokAuth", shimLock, 7, request.Auth)
			s.set(t, "MokTimeout", shimLock, 7, []byte{mok.Countdown, 0, 0, 0})
		}, request.Password, "MODULE ours loaded"},
	} {
		store := varStore{content(t, vars)}
		c.edit(&store)
		own := filepath.Join(dir, "vars")
		if err := os.WriteFile(own, store.b, 0o600); err != nil {
			t.Fatal(err)
		}
		said := console(t, c.password, []string{"-machine", "q35,smm=on", "-accel", "tcg,tb-size=128", "-cpu", "max", "-m", "768", "-display", "none", "-nic", "none",
			"-global", "driver=cfi.pflash01,property=secure,value=on", "-serial", "stdio", "-monitor", "none",
			"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + code, "-drive", "if=pflash,format=raw,unit=1,file=" + own,
			"-drive", "file=" + disk + ",if=none,id=d,format=raw,snapshot=on,file.locking=off", "-device", "virtio-blk-pci,drive=d,bootindex=0"}, "END of test")
		t.Logf("%s:\n%s", name, said[max(0, strings.Index(said, "LOCKDOWN")):])
		const lists = " a1 59 c0 a5 e4 94 a7 4a 87 b5 ab 15 5c 2b f0 72" // EFI_CERT_X509_GUID: what the agent reads of shim's list
		for _, want := range []string{"LOCKDOWN none [integrity]", "MODULE unsigned refused", "MODULE other refused", "MOKTABLE " + lists, c.want} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: the console does not say %q:\n%s", name, want, said)
			}
		}
	}
}

// console starts a machine and returns what it prints, to a text. MokManager is answered where it is
// to ask for a password.
func console(t *testing.T, password string, argv []string, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", argv...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var screen mok.Screen
	var wg sync.WaitGroup
	defer wg.Wait()
	if password != "" {
		talk := mok.Dialogue{Screen: &screen, Clock: clock.Wall{}, Password: password, Press: func(_ context.Context, keys string) error {
			_, err := io.WriteString(in, keys)
			return err
		}}
		wg.Go(func() {
			if err := talk.Run(ctx); err != nil {
				t.Errorf("MokManager: %v\n%q", err, screen.Lines())
			}
		})
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	b := make([]byte, 4096)
	for !strings.Contains(said.String(), text) {
		n, err := out.Read(b)
		said.Write(b[:n])
		_, _ = screen.Write(b[:n]) // memory takes it
		if err != nil {
			break
		}
	}
	cancel()
	_ = cmd.Wait() // killed
	return said.String()
}

// Owners of variables (UEFI 2.10, 32.6.1; shim's lib/guid.c), as they are stored.
var (
	imageDatabase = []byte{0xcb, 0xb2, 0x19, 0xd7, 0x3a, 0x3d, 0x96, 0x45, 0xa3, 0xbc, 0xda, 0xd0, 0x0e, 0x67, 0x65, 0x6f}
	shimLock      = []byte{0x50, 0xab, 0x5d, 0x60, 0x46, 0xe0, 0x00, 0x43, 0xab, 0xb6, 0x3d, 0xd8, 0x10, 0xdd, 0x8b, 0x23}
)

// signatureList is an EFI_SIGNATURE_LIST of one certificate.
func signatureList(der []byte) []byte {
	b := []byte{0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72}
	b = binary.LittleEndian.AppendUint32(b, uint32(28+16+len(der)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(16+len(der)))
	return append(append(b, shimLock...), der...)
}

// varStore is the file of OVMF's variables (MdeModulePkg, Guid/VariableFormat.h, with
// authenticated variables).
type varStore struct{ b []byte }

// Where the variables begin (behind the headers of volume and store), and the size of the
// header of one.
const (
	firstVariable  = 0x48 + 28
	variableHeader = 60
)

// each calls back with the place of each variable and of what follows the last one.
func (s *varStore) each(see func(at int, name string, data []byte) (on bool)) int {
	at := firstVariable
	for binary.LittleEndian.Uint16(s.b[at:]) == 0x55aa {
		nameSize, size := int(binary.LittleEndian.Uint32(s.b[at+36:])), int(binary.LittleEndian.Uint32(s.b[at+40:]))
		raw := s.b[at+variableHeader : at+variableHeader+nameSize]
		units := make([]uint16, nameSize/2-1)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(raw[2*i:])
		}
		data := s.b[at+variableHeader+nameSize : at+variableHeader+nameSize+size]
		if s.b[at+2] == 0x3f && !see(at, string(utf16.Decode(units)), data) {
			return at
		}
		at = (at + variableHeader + nameSize + size + 3) &^ 3
	}
	return at
}

// get is the value of a variable.
func (s *varStore) get(t *testing.T, want string) (value []byte) {
	t.Helper()
	s.each(func(_ int, name string, data []byte) bool {
		if name == want {
			value = bytes.Clone(data)
		}
		return true
	})
	if value == nil {
		t.Fatalf("there is no variable %s", want)
	}
	return value
}

// set marks a variable as deleted, and adds it with a value.
func (s *varStore) set(t *testing.T, name string, owner []byte, attributes uint32, value []byte) {
	t.Helper()
	var head []byte
	end := s.each(func(at int, have string, _ []byte) bool {
		if have == name {
			head = bytes.Clone(s.b[at : at+variableHeader]) // with its time
			s.b[at+2] &= 0xfc
		}
		return true
	})
	if head == nil {
		head = make([]byte, variableHeader)
		copy(head, []byte{0xaa, 0x55, 0x3f})
	}
	text := utf16.Encode([]rune(name + "\x00"))
	binary.LittleEndian.PutUint32(head[4:], attributes)
	binary.LittleEndian.PutUint32(head[36:], uint32(2*len(text)))
	binary.LittleEndian.PutUint32(head[40:], uint32(len(value)))
	copy(head[44:], owner)
	for _, u := range text {
		head = binary.LittleEndian.AppendUint16(head, u)
	}
	copy(s.b[end:], append(head, value...))
}

// TestPeerModulesFail: sources that do not compile are refused with the compiler's words, and
// packages without sources too.
func TestPeerModulesFail(t *testing.T) {
	of := fetchRelease(t, "bookworm")
	tree := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control":               "Package: broken-dkms\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDepends: dkms (>= 2)\nDescription: broken\n",
		"DEBIAN/postinst":              "#!/bin/sh\ntouch /ran\n",
		"usr/src/broken-1.0/dkms.conf": "PACKAGE_NAME=\"broken\"\nPACKAGE_VERSION=\"1.0\"\nBUILT_MODULE_NAME[0]=\"broken\"\nDEST_MODULE_LOCATION[0]=\"/extra\"\nAUTOINSTALL=\"yes\"\n",
		"usr/src/broken-1.0/Makefile":  "obj-m += broken.o\n", "usr/src/broken-1.0/broken.c": "int x = undeclared_thing;\n",
	} {
		at := filepath.Join(tree, name)
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, "postinst") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(t.TempDir(), "broken.deb")
	sh(t, "", "dpkg-deb", "--root-owner-group", "--build", tree, deb)
	dir := t.TempDir()
	m := Modules{Driver: "gpu", Kernel: of.kernel, Headers: "linux-headers-" + of.kernel, Key: siteKey(t, "peer")}
	r := Root{Suite: "bookworm", Arch: inventory.AMD64, Image: of.image}
	_, err := BuildModules(t.Context(), dir, r, m, []string{deb}, func(string) {})
	if t.Log(err); errkind.Of(err) != errkind.Mismatch || !strings.Contains(fmt.Sprint(err), "undeclared_thing") || errkind.Action(err) == "" {
		t.Errorf("broken sources: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "root/ran")); err == nil {
		t.Error("a script of the package was run")
	}
	if _, err := BuildModules(t.Context(), t.TempDir(), r, m, nil, func(string) {}); errkind.Of(err) != errkind.NotFound {
		t.Errorf("no sources: %v", err)
	}
}
