// Package main is etcd as a binary: go.etcd.io/etcd/server/v3 holds the server, and its own main lives in a module
// that drags every etcd tool with it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
