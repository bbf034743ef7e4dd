// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/inventory/language"
)

// pageSizes are those of page_size: kernels of distributions for arm64 have pages of 4
// or of 64 KiB, those for x86-64 of 4 KiB.
var pageSizes = []string{"4K", "64K"}

// pageSize reads page_size. It is refused where no kernel has it, and where nothing would
// read it back: the health checks are those of nodes with GPUs.
func (l *loader) pageSize(h *Hardware, b *language.Body) {
	text := language.Get[string](b, "page_size")
	kib, err := strconv.Atoi(strings.TrimSuffix(text, "K"))
	if err != nil {
		return // not given, or reported as none of pageSizes
	}
	h.PageSize = kib << 10
	if h.Arch == AMD64 && text != pageSizes[0] {
		l.diags.Add("language.value", b.Range("page_size"), "Page size of another architecture",
			fmt.Sprintf("Hardware %q is of %s, whose kernels have pages of %s, and page_size says %s. Write arch = %q if its processors are of that, else leave page_size out.", h.Name, h.Arch, pageSizes[0], text, ARM64)).
			Also("the architecture", b.Range("arch")).In(b.Decl)
	}
	if len(b.Blocks("gpu")) == 0 {
		l.diags.Add("language.value", b.Range("page_size"), "Page size is not read back",
			fmt.Sprintf("Hardware %q has no gpu block, and the page size is read back by the health checks of nodes with GPUs: page_size would have no effect. Leave it out.", h.Name)).In(b.Decl)
	}
}
