// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// media is what is read of a VirtualMedia resource.
type media struct {
	path       string
	MediaTypes []text
	Image      text
	Inserted   bool
	Actions    struct {
		Insert action `json:"#VirtualMedia.InsertMedia"`
		Eject  action `json:"#VirtualMedia.EjectMedia"`
	}
}

// action is one action of a resource.
type action struct {
	Target text `json:"target"`
}

// full reports whether something is in a drive, or the service shows an old image.
func (m media) full() bool { return m.Inserted || m.Image != "" }

// Media returns what is in the node's virtual CD drive, of several in the one that this
// client filled, else in the one that is full; "": nothing.
func (c *Client) Media(ctx context.Context) (image string, err error) {
	d, err := c.fullDrive(ctx)
	return string(d.Image), err
}

// fullDrive is the drive that this client filled, else the one that is full; the zero
// media where all are empty. Several full ones are refused.
func (c *Client) fullDrive(ctx context.Context) (media, error) {
	all, err := c.drives(ctx)
	if err != nil {
		return media{}, err
	}
	if i := slices.IndexFunc(all, func(m media) bool { return m.path == c.place.drive }); i >= 0 {
		return all[i], nil
	}
	full := slices.DeleteFunc(all, func(m media) bool { return !m.full() })
	switch len(full) {
	case 0:
		return media{}, nil
	case 1:
		return full[0], nil
	}
	return media{}, allFull(full)
}

// allFull names drives of which each holds something that nobody may want to lose.
func allFull(drives []media) error {
	var words []string
	for _, d := range drives {
		words = append(words, fmt.Sprintf("%s holds %q", d.path, OneLine(string(d.Image))))
	}
	return errkind.New(errkind.Refused, "%d virtual CD drives hold an image: %s", len(drives), OneLine(strings.Join(words, ", "))).
		Do("Eject what is not needed in the BMC's own pages. Nothing was ejected.")
}

// drives finds the node's virtual drives for CDs: those of its manager, else those of
// its system.
func (c *Client) drives(ctx context.Context) ([]media, error) {
	s, err := c.system(ctx)
	if err != nil {
		return nil, err
	}
	var m struct{ VirtualMedia link }
	if c.place.manager != "" {
		if _, err := c.get(ctx, c.place.manager, &m); err != nil {
			return nil, err
		}
	}
	for _, l := range []link{m.VirtualMedia, s.VirtualMedia} {
		if l == "" {
			continue
		}
		all, err := c.members(ctx, string(l), maxSystems)
		if err != nil {
			return nil, err
		}
		var found []media
		for _, l := range all {
			d := media{path: string(l)}
			if _, err := c.get(ctx, d.path, &d); err != nil {
				return nil, err
			}
			if slices.ContainsFunc(d.MediaTypes, func(t text) bool { return t == "CD" || t == "DVD" }) {
				found = append(found, d)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	if c.place.managers != nil {
		return nil, c.place.managers // one of them may have it
	}
	return nil, unsupported("virtual CD drive")
}

// driveFor chooses the drive that an image is put into: the one that holds it already,
// the only one, else an empty one. All empty ones are as good.
func (c *Client) driveFor(ctx context.Context, url string) (media, error) {
	all, err := c.drives(ctx)
	if err != nil {
		return media{}, err
	}
	if len(all) == 1 {
		return all[0], nil
	}
	for _, fits := range []func(media) bool{func(m media) bool { return string(m.Image) == url }, func(m media) bool { return !m.full() }} {
		if i := slices.IndexFunc(all, fits); i >= 0 {
			return all[i], nil
		}
	}
	return media{}, allFull(all)
}

// InsertMedia puts the image at a URL into the virtual CD drive. Where there is one
// only, what is in it is taken out first: some services go on showing an old image, and
// refuse a new one (ironic drivers/modules/redfish/boot.py:377). Where there are several,
// an empty one is taken, and what somebody put into the others stays.
func (c *Client) InsertMedia(ctx context.Context, url string) error {
	d, err := c.driveFor(ctx, url)
	if err != nil {
		return err
	}
	c.place.drive = d.path
	if d.full() {
		if err := c.eject(ctx, d); err != nil {
			return err
		}
	}
	if d.Actions.Insert.Target == "" { // Lenovo
		_, err := c.patch(ctx, d.path, map[string]any{"Image": url, "Inserted": true})
		return err
	}
	err = c.act(ctx, string(d.Actions.Insert.Target), "insert an image", map[string]any{"Image": url, "Inserted": true, "WriteProtected": true})
	if isStatus(err, http.StatusBadRequest) { // Supermicro X11 knows the image only
		err = c.act(ctx, string(d.Actions.Insert.Target), "insert an image", map[string]any{"Image": url})
	}
	return err
}

// EjectMedia empties the virtual CD drive; an empty one is left alone.
func (c *Client) EjectMedia(ctx context.Context) error {
	d, err := c.fullDrive(ctx)
	if err != nil || !d.full() {
		return err
	}
	return c.eject(ctx, d)
}

func (c *Client) eject(ctx context.Context, d media) error {
	if d.Actions.Eject.Target == "" {
		_, err := c.patch(ctx, d.path, map[string]any{"Image": nil, "Inserted": false})
		return err
	}
	return c.act(ctx, string(d.Actions.Eject.Target), "eject the image", map[string]any{})
}

// act sends an action to its target, once.
func (c *Client) act(ctx context.Context, target, what string, body any) error {
	path, ok := cleanPath(target)
	if !ok {
		return errkind.New(errkind.Unsupported, "the bmc has no action to %s", what)
	}
	_, err := c.post(ctx, path, body)
	return err
}

// unsupported says that the service lacks something.
func unsupported(what string) error {
	return errkind.New(errkind.Unsupported, "the bmc shows no %s", what)
}
