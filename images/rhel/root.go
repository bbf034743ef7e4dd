// SPDX-License-Identifier: Apache-2.0

package rhel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/internal/dnf"
	"github.com/ironrail/ironrail/images/internal/entries"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/inventory"
)

// builder is one build in progress.
type builder struct {
	recipe    Recipe
	disk      bootdisk.Maker
	installed installed.List
}

// newBuilder returns a builder that works in a folder. dnf works in another one than this
// process, so that names of files are absolute.
func newBuilder(r Recipe, dir string, say func(string)) *builder {
	if at, err := filepath.Abs(dir); err == nil {
		dir = at
	}
	return &builder{recipe: r, disk: bootdisk.Maker{Root: filepath.Join(dir, "root"), Dir: dir, Seed: r.Digest(), Say: say, Family: r.family(), Arch: inventory.AMD64, SecureBoot: r.SecureBoot, InMemory: r.InMemory}}
}

// tools are what a build runs on the controller, beside those that make a disk.
var tools = []bootdisk.Tool{{Name: "dnf", Package: "dnf"}, {Name: "rpm", Package: "rpm"}, {Name: "unshare", Package: "util-linux"}, {Name: "mount", Package: "mount"}}

// checkTools reports everything that is missing at once.
func (b *builder) checkTools(context.Context) error {
	made := bootdisk.DiskTools()
	if b.recipe.InMemory {
		made = b.disk.Tools()
	}
	return bootdisk.CheckTools(append(slices.Clone(tools), made...))
}

// settings are the files of every image, besides what packages bring.
func (r Recipe) settings() map[string]string {
	all := bootdisk.Settings(r.family(), inventory.AMD64)
	for _, a := range r.Repositories {
		all[nodeRepos+"/"+id(a)+".repo"] = repoFile(a, "/"+keyFile(a))
	}
	return all
}

// machineInfo is read by kernel-install(8) of systemd 250 and later before machine-id.
const machineInfo = "etc/machine-info"

// machineID is the node's own, made at its first boot. While packages are installed it has to be
// one too: plugins of kernel-install do nothing without it.
const machineID = "etc/machine-id"

// early are the files that kernel-install reads while packages are installed. The identifier is
// the same on every node, and names nothing but entries of kernels.
func (b *builder) early() map[string]string {
	all, id := b.recipe.settings(), b.disk.EntriesID()
	return map[string]string{
		bootdisk.CommandLineFile: all[bootdisk.CommandLineFile], bootdisk.DefaultKernelFile: all[bootdisk.DefaultKernelFile],
		machineInfo: "KERNEL_INSTALL_MACHINE_ID=" + id + "\n", machineID: id + "\n",
	}
}

// prepare makes the root with what has to be there before packages are.
func (b *builder) prepare(context.Context) error {
	for _, dir := range []string{"dev", "proc", "run", "sys"} {
		if err := os.MkdirAll(filepath.Join(b.disk.Root, dir), 0o755); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, text := range b.early() {
		if err := errors.Join(root.MkdirAll(path.Dir(name), 0o755), root.WriteFile(name, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// services are started on every node. Presets of the distribution start them as well.
var services = []string{"NetworkManager", "chronyd", "sshd"}

// settle makes the root that of any node.
func (b *builder) settle(ctx context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := errors.Join(dropFolder(root, b.cache()), b.disableRepos(root)); err != nil {
		return err
	}
	b.disk.Files = b.recipe.settings()
	for _, a := range b.recipe.Repositories {
		b.disk.Files[keyFile(a)] = a.Key
	}
	if err := b.disk.Settle(root); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	if err := b.inRoot(ctx, append([]string{"systemctl", "enable"}, services...)...); err != nil || b.recipe.CryptoPolicy == "" {
		return err
	}
	if err := b.inRoot(ctx, "update-crypto-policies", "--no-reload", "--set", b.recipe.CryptoPolicy); err != nil {
		return errkind.New(errkind.Refused, "crypto policy %s: %w", b.recipe.CryptoPolicy, err).Do("Name a policy that the image has in /usr/share/crypto-policies/policies.")
	}
	return nil
}

// dropFolder removes what dnf, whatever its options say, keeps below the root under the path of its
// cache on the controller, with the folders above that nothing else is in.
func dropFolder(root *os.Root, at string) error {
	name := strings.TrimPrefix(at, "/")
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	for name = path.Dir(name); strings.Contains(name, "/") && root.Remove(name) == nil; name = path.Dir(name) {
	}
	return nil
}

// inRoot runs a program of the root in it.
func (b *builder) inRoot(ctx context.Context, argv ...string) error {
	return b.disk.Run(ctx, nil, dnf.Enclose(b.disk.Root, append([]string{"chroot", b.disk.Root}, argv...)...)...)
}

// disableRepos switches off the repositories that packages of the distribution bring: a node
// takes packages from those that the site names. The files stay, since packages would bring ones
// that are not there anew.
func (b *builder) disableRepos(root *os.Root) error {
	names, err := fs.Glob(root.FS(), nodeRepos+"/*.repo")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		if err := root.WriteFile(name, []byte(disabled(string(text))), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// disabled is a file of repositories with none of them enabled: what says nothing is.
func disabled(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "enabled" {
			continue
		}
		out.WriteString(line)
		if strings.HasPrefix(line, "[") {
			if !strings.HasSuffix(line, "\n") {
				out.WriteString("\n")
			}
			out.WriteString("enabled=0\n")
		}
	}
	return out.String()
}

// inspect looks whether the root is what the block says, and can be set up on a node.
func (b *builder) inspect(ctx context.Context) error {
	at, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer at.Close()
	root := at.FS()
	have := distribution.OSRelease(root)
	if release, _ := distribution.OfSystem(have); release != b.recipe.release() {
		return errkind.New(errkind.Mismatch, "the packages are of %q (os-release: ID=%s, VERSION_ID=%s), and its block says release %s", have["PRETTY_NAME"], have["ID"], have["VERSION_ID"], b.recipe.Release).
			Do("Correct release, or the repositories.")
	}
	if missing := b.disk.Family.Disk.Missing(root); len(missing) > 0 {
		return errkind.New(errkind.Unsupported, "the packages brought no %s", strings.Join(missing, "; ")).Do("Look at the repositories: each package of the base has to be the distribution's own.")
	}
	if err := checkBoot(root, b.disk.Family.Boot.Loader); err != nil {
		return err
	}
	if err := errors.Join(entries.CheckDracut(root), entries.CheckLabels(root)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	if err := b.inRoot(ctx, "rpm", "--query", "--whatprovides", "system-release"); err != nil {
		return errkind.New(errkind.Corrupt, "rpm of the image does not read what was installed: %w", err)
	}
	if b.installed = installed.Read(root); b.installed.Unread != "" {
		return errkind.New(errkind.Corrupt, "the list of its packages: %s", b.installed.Unread)
	}
	return nil
}

// keep copies out what package repositories of driver stacks are resolved against.
func (b *builder) keep(context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	var names []string
	for _, p := range b.installed.Packages {
		names = append(names, p.Name+"-"+p.Version+"."+p.Arch)
	}
	sources := repo.DnfSources{Release: b.recipe.Release, Kernel: distribution.NewestOf(names)}
	for _, a := range b.recipe.Repositories {
		sources.Repositories = append(sources.Repositories, repo.DnfRepository{Name: a.Name, URL: a.URL, Key: a.Key})
	}
	text, err := json.MarshalIndent(sources, "", "\t")
	if err != nil {
		return err
	}
	database := path.Join(dnf.Database(b.recipe.Release), images.DatabaseFile)
	return errors.Join(bootdisk.CopyOut(root, database, b.disk.Path(images.DatabaseFile)), os.WriteFile(b.disk.Path(images.RepositoriesFile), text, 0o644))
}

// checkBoot looks at the entries of its kernels. /boot is a folder of the root, which the paths in
// them have to say: GRUB knows no mount.
func checkBoot(root fs.FS, l *distribution.Loader) error {
	boot, err := fs.Sub(root, "boot")
	if err != nil {
		return err
	}
	menu, err := fs.ReadFile(root, l.Menu())
	if err != nil {
		return err
	}
	if err := entries.Check(boot, path.Base(l.Folder)+"/grub.cfg", string(menu)); err != nil {
		return err
	}
	names, err := fs.Glob(boot, "loader/entries/*.conf")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(boot, name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) > 1 && (words[0] == "linux" || words[0] == "initrd") && !strings.HasPrefix(words[1], "/boot/") {
				return errkind.New(errkind.Unsupported, "/boot/%s: its %s is %s, which is not below /boot of the root file system", name, words[0], words[1]).
					Do("Look at grub2-mkrelpath of the image (grub2-tools), by which kernel-install writes the path.")
			}
		}
	}
	return nil
}

// labelOf is the extended attribute with the label of a file.
const labelOf = "security.selinux"

// selinuxConfig has the mode and the policy of SELinux. autorelabel has the first boot give labels and
// restart, which packages of policies may ask for.
const (
	selinuxConfig = "etc/selinux/config"
	autorelabel   = ".autorelabel"
)

// label gives every file the label that the policy of the image has for it. The kernel of the
// controller needs no SELinux for that. What the agent writes on a node gets its labels at the
// first boot.
func (b *builder) label(ctx context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := root.ReadFile(selinuxConfig)
	if err != nil {
		return errkind.New(errkind.NotFound, "the image has no settings of SELinux: %w", err)
	}
	policy := distribution.ReadOSRelease(string(text))["SELINUXTYPE"]
	if !repoName.MatchString(policy) {
		return errkind.New(errkind.Invalid, "/etc/selinux/config names no policy (SELINUXTYPE=%q)", policy)
	}
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	contexts := "/etc/selinux/" + policy + "/contexts/files/file_contexts"
	// It needs /proc. Folders that others are mounted on from the start have no use of a label.
	if err := b.inRoot(ctx, "setfiles", "-F", "-e", "/dev", "-e", "/proc", "-e", "/run", "-e", "/sys", contexts, "/"); err != nil {
		return err
	}
	if n, err := unix.Lgetxattr(filepath.Join(b.disk.Root, "etc/fstab"), labelOf, nil); err != nil || n == 0 {
		return errkind.New(errkind.Unsupported, "the files have no labels after setfiles: %v", fmt.Errorf("%s of /etc/fstab: %w", labelOf, err)).
			Do("Build images on a file system that takes extended attributes, such as ext4 or xfs.")
	}
	return nil
}

// settleMemory takes out of the root what starts it from a disk, and has SELinux refuse nothing: files that
// are written in memory before its policy is loaded keep no label.
func (b *builder) settleMemory(context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), "boot/initramfs-*.img")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	if err := root.Remove(autorelabel); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := root.ReadFile(selinuxConfig)
	if err != nil {
		return errkind.New(errkind.NotFound, "the image has no settings of SELinux: %w", err)
	}
	return root.WriteFile(selinuxConfig, []byte(permissive(string(text))), 0o644)
}

// permissive are settings of SELinux whose policy is loaded and refuses nothing; disabled stays so.
func permissive(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "SELINUX="); is && value != "disabled" {
			line = "SELINUX=permissive\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// source is the image that was built.
func (b *builder) source() store.Source {
	files := map[string]string{}
	if b.recipe.SecureBoot {
		files = b.disk.BootFiles()
	}
	for _, name := range []string{images.KernelFile, images.InitrdFile, images.DriversFile, images.DatabaseFile, images.RepositoriesFile} {
		files[name] = b.disk.Path(name)
	}
	release, disk, form := b.recipe.release(), b.disk.Path(bootdisk.DiskFile), ""
	if b.recipe.InMemory {
		disk, form = b.disk.Path(bootdisk.SquashfsFile), manifest.Squashfs
	}
	return store.Source{Name: b.recipe.Name(), Recipe: b.recipe.Digest(), Disk: disk, Form: form, Files: files, Installed: b.installed,
		System: manifest.System{Distribution: release.Family, Release: release.Version, Arch: string(inventory.AMD64), Kernel: b.disk.Kernel()}}
}
