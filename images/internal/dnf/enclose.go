// SPDX-License-Identifier: Apache-2.0

package dnf

// enclosed is the script that starts a program with what scriptlets of packages need mounted
// below a root, seen by it alone: nothing is left mounted, whatever ends it. It is the same for
// every recipe.
const enclosed = `set -e
root=$1
shift
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o nosuid,mode=755 dev "$root/dev"
mount -t tmpfs -o nosuid,nodev,mode=755 run "$root/run"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm"
exec "$@"`

// Enclose is the command line that runs a program in that way. The root has the folders dev,
// proc, run and sys.
func Enclose(root string, argv ...string) []string {
	return append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", enclosed, "sh", root}, argv...)
}
