# make bench    install what is missing, build, and measure this machine's forwarding (asks for sudo where needed)
# make test     install what is missing, and run the tests; those that need root run as root
# make test-long  tests that take minutes each or judge a rate: the shipped plans held against physics, a hundred kills,
#                 and labs with real drivers in QEMU
# make install  put the binary, man pages and shell completions in place (PREFIX=/usr/local, DESTDIR=)
# make package  what a release consists of, below target/package: a static program, .tar.xz, .deb, .rpm, SBOM, checksums
# make dist     the sources with everything that they need to build without network and without clang, there, too
# make peers    compare the generator with those that are installed (trafgen, tcpreplay, iperf3, ...)

PREFIX ?= /usr/local
CARGO ?= cargo
# Root needs no sudo, and a plain user without it still gets everything that needs no root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo || true)
BENCH_ARGS ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: bench build test test-long lint install uninstall package dist peers setup setup-long setup-package clean

bench: setup
	$(CARGO) build --profile quick --locked -p linerate --bin linerate
	$(SUDO) $(TARGET)/quick/linerate bench $(BENCH_ARGS)

build: setup
	$(CARGO) build --release --locked

setup:
	@scripts/setup build

setup-long:
	@scripts/setup long

setup-package:
	@scripts/setup package

test: setup
	CARGO=$(CARGO) scripts/run-tests

test-long: setup-long
	CARGO=$(CARGO) scripts/run-tests long

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	scripts/check-dependencies

package: setup-package
	CARGO=$(CARGO) scripts/package

dist: setup
	CARGO=$(CARGO) scripts/package source

peers: build
	$(SUDO) benches/peers

install: build
	rm -rf $(TARGET)/documents
	$(TARGET)/release/linerate documents $(TARGET)/documents
	$(SUDO) install -Dm755 $(TARGET)/release/linerate $(DESTDIR)$(PREFIX)/bin/linerate
	for page in $(TARGET)/documents/*.1; do $(SUDO) install -Dm644 $$page $(DESTDIR)$(PREFIX)/share/man/man1/$$(basename $$page); done
	$(SUDO) install -Dm644 $(TARGET)/documents/linerate.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/linerate
	$(SUDO) install -Dm644 $(TARGET)/documents/_linerate $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_linerate
	$(SUDO) install -Dm644 $(TARGET)/documents/linerate.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/linerate.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/linerate $(DESTDIR)$(PREFIX)/share/man/man1/linerate*.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/linerate
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_linerate
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/linerate.fish

clean:
	$(CARGO) clean
