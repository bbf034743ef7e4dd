// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// Where sshd finds its key. The drop-in names this key alone, so that no other
// key, of the image or made later, identifies the node.
const (
	keyFile = "etc/ssh/ssh_host_ed25519_key"
	dropIn  = "etc/ssh/sshd_config.d/10-ironrail.conf"
)

// hostKey makes the SSH host key and removes every other one. fresh is false
// when this install was configured before: then its key is kept. It returns the
// public half in authorized_keys form.
func hostKey(root rootfs.Root, node string, fresh bool) (string, error) {
	if !fresh && rootfs.Exists(root, dropIn) {
		if public, err := oldKey(root); err == nil {
			return public, nil
		}
	}
	if err := removeHostKeys(root); err != nil {
		return "", err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "root@"+node)
	if err != nil {
		return "", fmt.Errorf("ssh host key: %w", err)
	}
	if err := rootfs.WriteText(root, keyFile, string(pem.EncodeToMemory(block)), 0o600); err != nil {
		return "", err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("ssh host key: %w", err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if err := rootfs.WriteText(root, keyFile+".pub", line+" root@"+node+"\n", 0o644); err != nil {
		return "", err
	}
	config := "# Written by ironrail when this node was installed.\nHostKey /" + keyFile + "\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
	return line, rootfs.WriteText(root, dropIn, config, 0o644)
}

// oldKey returns the public half of the private key that is there.
func oldKey(root rootfs.Root) (string, error) {
	b, err := fs.ReadFile(root.FS(), keyFile)
	if err != nil {
		return "", err
	}
	signer, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// removeHostKeys removes the keys that came with the image: every node would
// have the same.
func removeHostKeys(root rootfs.Root) error {
	entries, err := fs.ReadDir(root.FS(), "etc/ssh")
	if err != nil {
		return nil // no sshd in the image: it is seen when nobody answers
	}
	for _, e := range entries {
		if ok, _ := path.Match("ssh_host_*", e.Name()); ok {
			if err := rootfs.Remove(root, path.Join("etc/ssh", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
