// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

func updateService(c *call) obj {
	p := &c.s.p
	o := obj{"@odata.type": "#UpdateService.v1_11_0.UpdateService", "Id": "UpdateService", "Name": "Update Service", "ServiceEnabled": true, "Status": statusOK(),
		"FirmwareInventory": linkTo("UpdateService", "FirmwareInventory"), "HttpPushUri": joinURI(p.PushURI),
		"Actions": obj{"#UpdateService.SimpleUpdate": obj{"target": joinURI("UpdateService", "Actions", "UpdateService.SimpleUpdate"),
			"TransferProtocol@Redfish.AllowableValues": []string{"HTTP", "HTTPS"}}}}
	if p.Multipart {
		o["MultipartHttpPushUri"] = joinURI(p.PushURI)
	}
	return o
}

func getInventory(c *call) obj {
	if c.s.chance(c.s.q.Flaky403) {
		c.fail("InsufficientPrivilege")
		return nil
	}
	return c.collection("SoftwareInventory", "Firmware Inventory Collection",
		collectIDs(c.s.c.Components(), func(_ int, k chassis.Component) string { return k.ID }))
}

func getComponent(c *call) obj {
	for _, k := range c.s.c.Components() {
		if k.ID == c.args[0] {
			return obj{"@odata.type": "#SoftwareInventory.v1_5_0.SoftwareInventory", "Id": k.ID, "Name": k.Name, "SoftwareId": k.ID,
				"Version": k.Version, "Updateable": k.Updateable, "Status": statusOK()}
		}
	}
	return nil
}

// imageHead is how much of an image is looked at.
const imageHead = 4 << 10

var (
	headPattern    = lazyregexp.New(`^IRONRAIL-FIRMWARE component=(\S*) version=(\S+)\n`)
	versionPattern = lazyregexp.New(`[0-9]+(?:\.[0-9A-Za-z]+)+`)
)

// identifyImage learns from an image's head and name which component and version it
// is; what it cannot learn is empty.
func identifyImage(head []byte, name string) (component, version string) {
	if m := headPattern.FindSubmatch(head); m != nil {
		return string(m[1]), string(m[2])
	}
	base := path.Base(name)
	version = versionPattern.FindString(strings.TrimSuffix(base, path.Ext(base)))
	component, _, _ = strings.Cut(base, "_")
	return component, version
}

// firmware finds the component that an update is for: the first of its targets,
// or the one that the image names by id or name.
func (s *server) firmware(targets []string, named string) (chassis.Component, bool) {
	want := named
	if len(targets) > 0 {
		want = path.Base(targets[0])
	}
	for _, k := range s.c.Components() {
		if k.ID == want || len(targets) == 0 && strings.EqualFold(k.Name, want) {
			return k, true
		}
	}
	return chassis.Component{}, false
}

func simpleUpdate(c *call) {
	o, ok := c.body()
	if !ok {
		return
	}
	image, has, ok := c.text(o, "ImageURI")
	switch {
	case !ok:
		return
	case !has || image == "":
		c.fail("ActionParameterMissing", "UpdateService.SimpleUpdate", "ImageURI")
		return
	}
	targets, ok := c.targets(o)
	if !ok {
		return
	}
	t := c.s.newTask("Firmware Update")
	c.accepted(t)
	c.s.run(t, targets, func() ([]byte, string, error) {
		head, err := c.s.fetch(image)
		return head, image, err
	})
}

// fetch reads the head of an image, where images are read.
func (s *server) fetch(image string) ([]byte, error) {
	if s.o.Fetch == nil {
		return nil, nil
	}
	r, err := s.o.Fetch(s.ctx, image)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return drainImage(r)
}

// drainImage reads an image to its end and keeps its head.
func drainImage(r io.Reader) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(r, imageHead))
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(r, maxImage))
	}
	return head, err
}

// targets reads the Targets of an update.
func (c *call) targets(o obj) ([]string, bool) {
	raw, has := o["Targets"]
	if !has || raw == nil {
		return nil, true
	}
	list, isList := raw.([]any)
	var out []string
	for _, x := range list {
		s, isText := x.(string)
		if !isText || !strings.HasPrefix(s, root+"/") {
			isList = false
			break
		}
		out = append(out, s)
	}
	if !isList {
		c.fail("PropertyValueTypeError", "Targets", "Targets")
	}
	return out, isList
}

// accepted answers with a task (DSP0266, 12.2).
func (c *call) accepted(t *task) {
	c.w.Header().Set("Location", c.s.monitor(t.id))
	c.w.Header().Set("Retry-After", "10")
	now, _ := c.s.task(t.id)
	c.send(http.StatusAccepted, c.s.showTask(now))
}

// run installs an image in the time that it takes.
func (s *server) run(t *task, targets []string, read func() ([]byte, string, error)) {
	s.setTask(t, func(t *task) { t.state, t.end = "Running", t.start.Add(s.o.Update) })
	s.later(s.o.Update, func() {
		head, name, err := read()
		if err != nil {
			s.finishTask(t, "Exception", "The image could not be read.")
			return
		}
		named, version := identifyImage(head, name)
		k, found := s.firmware(targets, named)
		switch {
		case !found:
			s.finishTask(t, "Exception", "The image is for no component of this system.")
			return
		case version == "":
			s.finishTask(t, "Exception", "The image is not valid.")
			return
		}
		if err := s.c.Update(k.ID, version); err != nil {
			s.finishTask(t, "Exception", "The component cannot be updated.")
			return
		}
		if k.ID != s.bmcFirmware().ID {
			s.finishTask(t, "Completed", "The image is installed and in force after the next reset.")
			return
		}
		s.finishTask(t, "Completed", "The image is installed.")
		s.c.Activate(k.ID)
		s.c.ResetBMC()
	})
}

// pushImage takes an image in the body: multipart (UpdateParameters and
// UpdateFile) or plain.
func pushImage(c *call) {
	if c.path != joinURI(c.s.p.PushURI) {
		c.missing()
		return
	}
	body := http.MaxBytesReader(c.w, c.r.Body, maxImage)
	kind, params, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	var head []byte
	var name string
	var targets []string
	var err error
	switch {
	case strings.HasPrefix(kind, "multipart/"):
		var ok bool
		head, name, targets, ok = c.parts(multipart.NewReader(body, params["boundary"]))
		if !ok {
			return
		}
	case kind == "application/octet-stream":
		head, err = drainImage(body)
	default:
		c.failWith(http.StatusUnsupportedMediaType, "GeneralError")
		return
	}
	if err != nil {
		c.fail("GeneralError")
		return
	}
	t := c.s.newTask("Firmware Update")
	c.s.run(t, targets, func() ([]byte, string, error) { return head, name, nil })
	c.accepted(t)
}

// parts reads a multipart push; when it is wrong it has answered.
func (c *call) parts(r *multipart.Reader) (head []byte, name string, targets []string, ok bool) {
	file := false
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.failWith(http.StatusBadRequest, "GeneralError")
			return nil, "", nil, false
		}
		switch part.FormName() {
		case "UpdateParameters":
			o := obj{}
			if err := json.NewDecoder(io.LimitReader(part, maxBody)).Decode(&o); err != nil {
				c.fail("MalformedJSON")
				return nil, "", nil, false
			}
			if targets, ok = c.targets(o); !ok {
				return nil, "", nil, false
			}
		case "UpdateFile":
			file, name = true, part.FileName()
			if head, err = drainImage(part); err != nil {
				c.failWith(http.StatusBadRequest, "GeneralError")
				return nil, "", nil, false
			}
		}
	}
	if !file {
		c.fail("PropertyMissing", "UpdateFile")
		return nil, "", nil, false
	}
	return head, name, targets, true
}
