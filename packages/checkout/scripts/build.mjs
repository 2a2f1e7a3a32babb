// Builds the checkout page and the widget into dist/: every file minified, named by its content and compressed beforehand,
// so that the platform only hands out what lies there. Run by scripts/build-checkout.mjs.
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'vite'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')
const target = ['chrome111', 'firefox115', 'safari16.4']
const common = {
  root: folder, configFile: false, envDir: false, publicDir: false, logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
}

/** The page's files; scripts and styles stay files, as its policy forbids everything inline. */
async function buildPage(outDir) {
  await build({
    ...common,
    base: '/checkout/',
    build: {
      outDir, target, emptyOutDir: true, assetsInlineLimit: 0, modulePreload: false, reportCompressedSize: false,
      rolldownOptions: { input: join(folder, 'index.html') },
    },
  })
  const html = readFileSync(join(outDir, 'index.html'), 'utf8').replaceAll(' crossorigin', '').replaceAll(/\n+/g, '\n')
  writeFileSync(join(outDir, 'index.html'), html)
  // The same page for an address that names no invoice; it asks for nothing.
  writeFileSync(join(outDir, 'missing.html'), html.replace('<body>', '<body data-missing>'))
}

/** One classic script, for any shop's page. */
async function buildWidget(outDir) {
  const parts = join(outDir, 'widget')
  await build({
    ...common,
    build: {
      outDir: parts, target, reportCompressedSize: false,
      lib: { entry: join(folder, 'src', 'widget', 'widget.ts'), formats: ['iife'], name: 'CustodyWidget', fileName: () => 'widget.js' },
    },
  })
  cpSync(join(parts, 'widget.js'), join(outDir, 'widget.js'))
  rmSync(parts, { recursive: true })
}

function compress(outDir) {
  for (const name of readdirSync(outDir, { recursive: true })) {
    if (!/\.(?:js|css|html|svg)$/.test(name)) continue
    const bytes = readFileSync(join(outDir, name))
    writeFileSync(join(outDir, `${name}.br`), brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }))
    writeFileSync(join(outDir, `${name}.gz`), gzipSync(bytes, { level: 9 }))
  }
}

/**
 * Whole or not at all: made beside and put in place by a rename.
 * @param dist the folder to make; @param stamp what is kept in it as `.inputs`
 */
export async function buildCheckout(dist, stamp) {
  const fresh = `${dist}.${process.pid}`
  mkdirSync(fresh, { recursive: true })
  try {
    await buildPage(fresh)
    await buildWidget(fresh)
    compress(fresh)
    writeFileSync(join(fresh, '.inputs'), stamp)
    rmSync(dist, { recursive: true, force: true })
    renameSync(fresh, dist)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
