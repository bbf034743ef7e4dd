// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Transports, as they are written before a source.
const (
	registryPrefix      = "docker://"
	layoutPrefix        = "oci-layout:"
	archivePrefix       = "oci-archive:"
	dockerArchivePrefix = "docker-archive:"
)

// source is where an image lies.
type source struct {
	transport string // one of the prefixes
	at        string // REGISTRY/REPOSITORY, or a path
	tag       string // "": none
	digest    string // sha256:HEX, of the manifest or index; of the configuration in a docker-archive
}

// parseSource reads TRANSPORT:PLACE[:TAG]@sha256:HEX.
func parseSource(text string) (source, error) {
	var s source
	for _, p := range []string{registryPrefix, layoutPrefix, archivePrefix, dockerArchivePrefix} {
		if strings.HasPrefix(text, p) {
			s.transport = p
		}
	}
	if s.transport == "" {
		return s, errkind.New(errkind.Refused, "source %q names no transport", text).
			Do("Write docker://REGISTRY/REPOSITORY:TAG@sha256:DIGEST, oci-layout:FOLDER@sha256:DIGEST, oci-archive:FILE@sha256:DIGEST or docker-archive:FILE@sha256:IMAGE-ID.")
	}
	place, digest, found := strings.Cut(strings.TrimPrefix(text, s.transport), "@")
	if !found || !isDigest(digest) {
		return s, errkind.New(errkind.Refused, "source %q has no digest", text).
			Do("Add @sha256:DIGEST at its end: without it another image could be installed under the same name. `skopeo inspect --format '{{.Digest}}' SOURCE` prints it.")
	}
	s.at, s.digest = place, digest
	slash := strings.LastIndexByte(place, '/')
	if i := strings.LastIndexByte(place, ':'); i > slash {
		s.at, s.tag = place[:i], place[i+1:]
	}
	if s.at == "" || strings.ContainsAny(s.at, "\n\r\x00") {
		return s, errkind.New(errkind.Refused, "source %q names no place", text)
	}
	if s.transport == registryPrefix {
		if _, err := name.NewRepository(s.at, name.StrictValidation); err != nil {
			return s, errkind.New(errkind.Refused, "source %q is no repository of a registry: %w", text, err).
				Do("Write docker://REGISTRY/REPOSITORY:TAG@sha256:DIGEST.")
		}
	}
	return s, nil
}

// path is the place of a source that is no registry, relative to the site's folder.
func (s source) path(site string) string { return folder.Path(site, s.at) }

// isDigest reports whether a text is sha256: and 64 lower-case hex digits.
func isDigest(text string) bool {
	hex, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
