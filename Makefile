# The everyday commands; CMake does the work. PRESET chooses the build (see CMakePresets.json).
PRESET ?= release
BUILD := build/$(PRESET)
TL := $(BUILD)/tl
FIXTURES ?= ../shared
export TL_FIXTURES := $(abspath $(FIXTURES))

.PHONY: deps build run test bench asan clang fuzz reference format install package wheel vscode site clean

build: $(BUILD)/build.ninja
	@cmake --build $(BUILD)

$(BUILD)/build.ninja: CMakeLists.txt CMakePresets.json | $(if $(filter run test,$(MAKECMDGOALS)),deps)
	@cmake --preset $(PRESET) >/dev/null || { echo "make deps installs what is missing" >&2; exit 1; }

# Installs the Debian packages that are missing; silent when none is. `make run` and `make test` do it
# first, the others never.
deps:
	@scripts/install-deps $(if $(filter $(PRESET),clang fuzz asan),--extra)

run: build
	@$(TL) run --memory-check examples/01_tour.tl
	@echo
	@$(TL) run examples/06_story.tl

test: build
	@python3 tests/run.py --build $(BUILD)

bench: build
	@cmake --build $(BUILD) --target bench

asan:
	@LSAN_OPTIONS="suppressions=$(CURDIR)/tests/support/lsan.supp:print_suppressions=0" \
		$(MAKE) --no-print-directory test PRESET=asan

clang:
	@$(MAKE) --no-print-directory test PRESET=clang

fuzz:
	@$(MAKE) --no-print-directory build PRESET=fuzz
	@scripts/fuzz build/fuzz $(SECONDS_EACH)

reference: build
	@$(TL) help --reference >docs/reference.md
	@$(TL) help --vim-syntax >editors/vim/syntax/tl.vim
	@$(TL) help --textmate >editors/textmate/tl.tmLanguage.json
	@$(TL) help --man >docs/tl.1
	@$(TL) help --bash >completions/tl.bash
	@$(TL) help --zsh >completions/_tl

# Scripts about mistakes of syntax cannot be formatted; they stay as they are.
format: build
	@git ls-files '*.[ch]' | xargs clang-format -i
	@$(TL) fmt examples tests/lang tests/bench 2>/dev/null || true

# PREFIX and DESTDIR say where; the default is /usr/local.
PREFIX ?= /usr/local
install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

# The Python package as a wheel in the build folder.
wheel: build
	@cmake --build $(BUILD) --target wheel

# The extension for Visual Studio Code in build/PRESET/vscode; needs Node.js and npm.
vscode: build
	@cmake --build $(BUILD) --target vscode

# The documentation website in build/PRESET/site; needs python3-markdown and python3-pygments.
site: build
	@cmake --build $(BUILD) --target site

# Debian packages in the build folder.
package: build
	@cd $(BUILD) && cpack -G DEB

clean:
	@rm -rf build
