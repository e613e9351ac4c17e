SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

PLATFORMS := linux/amd64 linux/arm64 windows/amd64 darwin/arm64 freebsd/amd64
FUZZTIME  := 10s
# Go's fuzzer now and then reports that its time is over as a failure, without an
# input that fails.
FUZZ_ENDED := awk '/^    context deadline exceeded$$/ { over = 1 } /Failing input|panic:|DATA RACE/ { bad = 1 } END { exit !over || bad }'
BENCHFLAGS :=
OLD := HEAD~1
NEW := HEAD
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

.PHONY: help build cross run test race lint fuzz suite kernel kernel-all bench bench-all bench-compare

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./ramserver
	go build -o ramserver ./cmd/ramserver

cross: ## build for every platform, to see that it does
	@for p in $(PLATFORMS); do echo "build $$p"; \
	CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -o /dev/null ./cmd/ramserver || exit 1; done

run: build ## build and serve 1 GiB on loopback; prints how to mount it
	./ramserver serve --size 1G

test: ## unit, table and fuzz-seed tests with the race detector; needs only Go modules
	go test -race -short -timeout 5m ./...

race: ## the same, over and over, on 2 and 8 processors
	go test -race -count=5 -cpu=2,8 -timeout 30m ./memstore/... ./export/...

lint: ## gofmt, vet for every platform, staticcheck
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	@for p in $(PLATFORMS); do echo "vet $$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go vet ./... || exit 1; done
	go vet -tags kernel ./loopback/...
	go tool staticcheck ./...
	go tool staticcheck -tags kernel ./loopback/...

fuzz: ## every fuzz target for FUZZTIME (10s)
	@go test -list '^Fuzz' ./... | \
	awk '/^Fuzz/ { name[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, name[i]; n = 0 }' | \
	while read -r pkg name; do \
		echo "$$pkg $$name"; \
		out=$$(go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s $$pkg </dev/null 2>&1); rc=$$?; \
		tail -n 20 <<<"$$out"; \
		if [ $$rc -ne 0 ] && ! $(FUZZ_ENDED) <<<"$$out"; then exit 1; fi; \
	done

suite: ## what needs root or Debian packages, which it installs: rpcbind, other users, libnfs, FUSE, smbclient, smbtorture
	./loopback/kerneltest/setup
	STRICT=1 go test -race -count=1 -p 1 -timeout 10m ./export/... ./loopback/... ./cmd/...
	go test -count=1 ./export/link
	go test -tags kernel -count=1 -timeout 5m -run Libnfs -v ./loopback/kerneltest

kernel: ## mount it with a real Linux kernel and work on it; needs root
	go test -tags kernel -count=1 -timeout 30m -parallel 2 -skip Libnfs -v ./loopback/kerneltest
	go test -tags kernel -count=1 -timeout 15m -run 'Real|FsxLong' -v ./loopback/fusefs

kernel-all: ## the same with the long runs, about an hour
	KERNEL_ALL=1 go test -tags kernel -count=1 -timeout 3h -parallel 2 -v ./loopback/kerneltest
	KERNEL_ALL=1 go test -count=1 -timeout 30m -run TortureBeside -v ./export/smb
	KERNEL_ALL=1 go test -count=1 -timeout 30m -run KilledUnderLoad -v ./cmd/ramserver
	KERNEL_ALL=1 FUSEFS_TEST_TIME=60s go test -tags kernel -count=1 -timeout 1h -run 'Real|FsxLong|BothSides|TestCoherence|OneCopy' -v ./loopback/fusefs

bench: ## the NFS engine beside others on loopback (BENCHFLAGS=-h lists flags), and the store
	go run ./export/nfs/bench $(BENCHFLAGS)
	go test -run '^$$' -bench . -benchmem ./memstore/... ./export/...

bench-all: ## with memory and scale; needs 16 GiB and a quiet machine
	go run ./export/nfs/bench -all $(BENCHFLAGS)

bench-compare: ## benchstat of two commits, OLD (HEAD~1) and NEW (HEAD)
	@dir=$$(mktemp -d) && trap 'git worktree remove --force $$dir/old; git worktree remove --force $$dir/new; rm -rf $$dir' EXIT && \
	git worktree add -q --detach $$dir/old $(OLD) && git worktree add -q --detach $$dir/new $(NEW) && \
	for c in old new; do echo "bench $$c"; (cd $$dir/$$c && go run ./export/nfs/bench $(BENCHFLAGS)) >$$dir/$$c.txt || exit 1; done && \
	go run $(BENCHSTAT) $$dir/old.txt $$dir/new.txt
