// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/images/internal/undriven"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// checkName is the name of the check of signatures.
const checkName = "image.signature"

// Check looks at what nodes of a block ask for that its system does not get, and at what it
// says of its vendor's signature, and verifies a list of
// checksums that lies in the folder of the site, dir; nothing outside of it is read. A key that has expired is a warning, since an
// image that is built stays as it is; so is a file that is not here, but on a controller.
func Check(now time.Time, dir string) func(*inventory.Inventory, inventory.Block) diag.List {
	if now.IsZero() {
		now = time.Now()
	}
	return func(inv *inventory.Inventory, b inventory.Block) (found diag.List) {
		for _, i := range inv.Images {
			if i.Name == b.Name && i.Kind == b.Kind {
				checkVendor(i, dir, now, &found)
				undriven.Check(inv, i, &found)
			}
		}
		return found
	}
}

func checkVendor(i *inventory.Image, site string, now time.Time, found *diag.List) {
	v := vendorOf(i)
	problems := v.problems()
	for _, p := range problems {
		found.Add(checkName, i.Place(p.attribute), "Signature that cannot be verified", fmt.Sprintf("Image %q: %s.", i.Name, p.detail)).In(i.Decl)
	}
	if len(problems) > 0 || v.List == "" || !filepath.IsLocal(v.List) || v.Signature != "" && !filepath.IsLocal(v.Signature) || isURL(v.List) || isURL(v.Signature) {
		return
	}
	attribute, err := checkList(i, v, site, now)
	if err == nil {
		return
	}
	d := found.Add(checkName, i.Place(attribute), "Signature that is refused", fmt.Sprintf("Image %q: %v. %s", i.Name, err, strings.TrimSpace(errkind.Action(err)+" `ironrail image build` would refuse the image."))).In(i.Decl)
	if errors.Is(err, signature.ErrExpired) || errors.Is(err, fs.ErrNotExist) {
		d.Warn()
	}
}

// checkList verifies a list of checksums that lies here, and returns the attribute that an
// error is about.
func checkList(i *inventory.Image, v Vendor, site string, now time.Time) (attribute string, err error) {
	keys, err := signature.ReadKeys([]byte(v.Key))
	if err != nil {
		return attrKey, err
	}
	root, err := os.OpenRoot(site)
	if err != nil {
		return attrList, err
	}
	defer root.Close()
	list, err := readFile(root.Open, v.List)
	if err != nil {
		return attrList, err
	}
	var detached []byte
	if v.Signature != "" {
		if detached, err = readFile(root.Open, v.Signature); err != nil {
			return attrSignature, err
		}
	}
	_, _, err = verifyList(v, keys, fileName(i.Source), strings.TrimPrefix(i.Checksum, "sha256:"), list, detached, now)
	return attrList, err
}
