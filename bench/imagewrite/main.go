// SPDX-License-Identifier: Apache-2.0

// Command imagewrite measures what the agent's processor does to write an image to a
// disk and to read it back, in processor seconds a GB. See write.sh beside this folder,
// which builds it twice: of this version and of an earlier one.
//
//	imagewrite pack IMAGE STORE     take a disk image into a store; prints its digest and key
//	imagewrite serve STORE          serve the store on loopback; prints its address
//	imagewrite write URL DIGEST KEY DISK [TIMES]
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/write"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "pack":
		return pack(ctx, args[1], args[2])
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 6 && args[0] == "write":
		times, err := strconv.Atoi(args[5])
		if err != nil {
			return err
		}
		return writeOften(ctx, args[1], args[2], args[3], args[4], times)
	}
	return errors.New("usage: imagewrite pack IMAGE STORE | serve STORE | write URL DIGEST KEY DISK TIMES")
}

func pack(ctx context.Context, image, dir string) error {
	s, err := store.Open(dir, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(image))
	digest, err := s.Put(ctx, store.Source{Name: "image.bench", Recipe: "sha256:" + hex.EncodeToString(sum[:]), Disk: image}, func(string) {})
	if err != nil {
		return err
	}
	fmt.Println(digest, s.PublicKey())
	return nil
}

func serve(dir string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	server := http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Minute}
	return server.Serve(l)
}

// writeOften writes the image to the disk and prints for each time the processor seconds a GB,
// and the wall seconds.
func writeOften(ctx context.Context, url, digest, key, disk string, times int) error {
	for i := range times {
		w := write.Writer{Find: func(d wire.Disk) (wire.Disk, error) { return d, nil }, Client: write.NewClient(nil)}
		before, began := cputime.Used(), time.Now()
		result, err := w.Run(ctx, wire.WriteParams{
			Disk: wire.Disk{Path: disk}, ManifestURL: url + "/" + store.Path(digest, store.ManifestFile), BlobURL: url + "/" + store.Path(digest, store.BlobFile),
			Digest: digest, PublicKey: key, AllowData: true, Marker: fmt.Sprintf("bench %d", i),
		})
		if err != nil {
			return err
		}
		took := cputime.Used() - before
		fmt.Printf("%.3f %.2f\n", took.Seconds()/(float64(result.Size)/1e9), time.Since(began).Seconds())
	}
	return nil
}
