// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// Options are the inputs of Load beside the files. The zero value is useful.
type Options struct {
	Variables  map[string]string // values of variables; a secret reference for a sensitive one
	Kinds      *Kinds            // of typed blocks; nil: DefaultKinds
	Now        time.Time         // overrides past their end no longer hold; zero: all hold
	Allowed    []string          // absolute folders outside the site that file() may read
	Limits     language.Limits   // of evaluation; zero fields take their defaults
	Checks     []Check           // of the whole site, beside the loader's own
	CheckNames []string          // of all checks that there are, for what allow blocks name; empty: not compared
}

// Load reads the *.hcl and *.hcl.json files of one folder. All findings come at
// once, sorted by file and byte. With an error among them the inventory is what
// could be understood, for editors and drawings; it must not be acted upon. Load
// reads nothing outside of the folder unless Options.Allowed says so.
func Load(dir string, opt Options) (*Inventory, Diagnostics, Files) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		reason := err
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			reason = p.Err
		}
		return &Inventory{Dir: dir, Sources: missingFolder(dir)}, Diagnostics{{Check: "language.file", Summary: "Folder cannot be read", Detail: fmt.Sprintf("The site's folder %q cannot be read: %s.", dir, reason)}}, nil
	}
	defer root.Close()
	sources := &Sources{FS: root.FS(), dir: dir, was: map[string]string{}}
	inv, diags, files := LoadFS(sources, opt)
	inv.Dir, inv.Sources = dir, sources
	return inv, diags, files
}

// LoadFS is Load of the top folder of a file system.
func LoadFS(fsys fs.FS, opt Options) (*Inventory, Diagnostics, Files) {
	kinds := opt.Kinds
	if kinds == nil {
		k := DefaultKinds()
		kinds = &k
	}
	specs := topSpecs(*kinds)
	result := language.Evaluate(fsys, specs, language.Options{Variables: opt.Variables, Allowed: opt.Allowed, Limits: opt.Limits})
	l := newLoader(fsys, result, opt)
	l.decode()
	l.readLock()
	l.inv.setNeeds()
	l.check(*kinds)
	return l.inv, l.lower(result.Diags, opt.Now).Sort(), result.Files
}

// loader turns evaluated bodies into the model. It belongs to one goroutine.
type loader struct {
	inv    *Inventory
	fsys   fs.FS
	result *language.Result
	diags  *diag.List
	opt    Options

	controllers map[string]*Controller
	networks    map[string]*Network
	bmcs        map[string]*BMCProfile
	logins      map[string]*Login
	hardware    map[string]*Hardware
	images      map[string]*Image
	layouts     map[string]*DiskLayout
	hosts       map[string]*HostSettings
	drivers     map[string]*Driver
	fabrics     map[string]*Fabric
	validations map[string]*Validation
	handovers   map[string]*Handover
	roles       map[string]*Role
	feedsOf     map[string]*BuildingFeed
	racks       map[string]*Rack
	nodes       map[string]*Node
	pdus        map[string]*PDU    // by scoped name
	switches    map[string]*Switch // by scoped name
	overrides   map[string]*language.Body
	bodies      map[any]*language.Body // where each thing comes from, for messages
	addresses   addressBook
	nodeNames   namesOf
	switchNames namesOf
}

func newLoader(fsys fs.FS, result *language.Result, opt Options) *loader {
	return &loader{
		inv: &Inventory{Site: Site{MaxErase: 1}, State: StateStore{Kind: "file"}}, fsys: fsys, result: result, diags: &result.Diags, opt: opt,
		controllers: map[string]*Controller{}, networks: map[string]*Network{}, bmcs: map[string]*BMCProfile{}, logins: map[string]*Login{}, hardware: map[string]*Hardware{}, images: map[string]*Image{},
		layouts: map[string]*DiskLayout{}, hosts: map[string]*HostSettings{}, drivers: map[string]*Driver{}, fabrics: map[string]*Fabric{}, validations: map[string]*Validation{},
		handovers: map[string]*Handover{}, roles: map[string]*Role{}, feedsOf: map[string]*BuildingFeed{}, racks: map[string]*Rack{}, nodes: map[string]*Node{}, pdus: map[string]*PDU{}, switches: map[string]*Switch{},
		overrides: map[string]*language.Body{}, bodies: map[any]*language.Body{},
	}
}

// decode fills the model in the order in which things refer to each other.
func (l *loader) decode() {
	l.decodeSite()
	decodeEach(l, "network", l.networks, &l.inv.Networks, l.network)
	decodeEach(l, "controller", l.controllers, &l.inv.Controllers, l.controller)
	decodeEach(l, "bmc", l.bmcs, &l.inv.BMCs, l.bmc)
	decodeEach(l, "login", l.logins, &l.inv.Logins, l.login)
	decodeEach(l, "image", l.images, &l.inv.Images, l.image)
	decodeEach(l, "disk_layout", l.layouts, &l.inv.DiskLayouts, l.diskLayout)
	decodeEach(l, "host", l.hosts, &l.inv.Hosts, l.host)
	decodeEach(l, "driver", l.drivers, &l.inv.Drivers, l.driver)
	decodeEach(l, "fabric", l.fabrics, &l.inv.Fabrics, l.fabric)
	decodeEach(l, "hardware", l.hardware, &l.inv.Hardware, l.hardwareBlock)
	decodeEach(l, "validation", l.validations, &l.inv.Validations, l.validation)
	decodeEach(l, "handover", l.handovers, &l.inv.Handovers, l.handover)
	decodeEach(l, "role", l.roles, &l.inv.Roles, l.role)
	l.roleOrder()
	l.decodeOverrides()
	decodeEach(l, "feed", l.feedsOf, &l.inv.Feeds, l.buildingFeed)
	decodeEach(l, "rack", l.racks, &l.inv.Racks, l.rack)
	for _, r := range l.inv.Racks {
		l.inv.Switches = append(l.inv.Switches, r.Switches...)
	}
	l.finishNodes()
	l.decodeRest()
}

// decodeEach decodes all blocks of one type; of two things with one name the first
// counts and the second is reported.
func decodeEach[T any](l *loader, block string, byName map[string]*T, list *[]*T, decode func(*language.Body) *T) {
	first := map[string]*language.Body{}
	for _, b := range l.result.Bodies[block] {
		if was := first[b.Name]; was != nil {
			l.diags.Add("name.duplicate", b.Named, fmt.Sprintf("Second %s of this name", block),
				fmt.Sprintf("The name %q is taken by another %s. %s", b.Name, block, describeApart(b, was))).Also("the first one", was.Named).In(b.Decl)
			continue
		}
		first[b.Name] = b
		if block != "rack" { // which checks its own
			l.checkName(b, rackName)
		}
		thing := decode(b)
		l.bodies[thing] = b
		byName[b.Name] = thing
		*list = append(*list, thing)
	}
	sortByName(*list)
}

// describeApart says how two blocks of one name are distinguished: of what a module declares,
// names are unique in the site as well.
func describeApart(b, was *language.Body) string {
	if b.Decl != was.Decl || b.Module() == was.Module() {
		return "Give one of them another name."
	}
	return fmt.Sprintf("The module declares it once for %s and once for %s: make its name of a variable, or declare it in the site and give it to the module.", was.Module(), b.Module())
}

// place is where attribute name of thing stands, or the header of its block.
func (l *loader) place(thing any, name string) hcl.Range {
	b := l.bodies[thing]
	if b == nil {
		return hcl.Range{}
	}
	return b.Range(name)
}

// readRef returns what a reference attribute means; nil when it is absent or wrong.
func readRef[T any](b *language.Body, name string, among map[string]*T) *T {
	return among[string(language.Get[language.RefName](b, name))]
}

// readRefs returns what a list of references means.
func readRefs[T any](b *language.Body, name string, among map[string]*T) []*T {
	var out []*T
	for _, r := range language.GetList[language.RefName](b, name) {
		if t := among[string(r)]; t != nil {
			out = append(out, t)
		}
	}
	return out
}
