// How each site is built into its dist/: every file minified, named by its content and compressed
// beforehand, so that the platform only hands out what lies there.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

/** Browsers that the sites are written for. */
export const target = ['chrome111', 'firefox115', 'safari16.4']

/** What every build of vite is told. @param folder the package's */
export const common = (folder) => ({
  root: folder,
  configFile: false,
  envDir: false,
  publicDir: false,
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
})

/**
 * A page and its files; scripts and styles stay files, as its policy forbids everything inline.
 * @param pages of the folder, which share their files @returns the first one's HTML
 */
export async function buildPage(folder, outDir, base, pages = ['index.html']) {
  const { build } = await import('vite')
  await build({
    ...common(folder),
    base,
    build: {
      outDir,
      target,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: false,
      reportCompressedSize: false,
      rolldownOptions: { input: pages.map((page) => join(folder, page)) },
    },
  })
  const texts = pages.map((page) => {
    const html = readFileSync(join(outDir, page), 'utf8')
      .replaceAll(' crossorigin', '')
      .replaceAll(/\n+/g, '\n')
    writeFileSync(join(outDir, page), html)
    return html
  })
  return texts[0]
}

/** Beyond this many bytes the best compression takes many seconds, for a few percent. */
const LARGE = 1_000_000

function compress(outDir) {
  for (const name of readdirSync(outDir, { recursive: true })) {
    if (!/\.(?:js|css|html|svg)$/.test(name)) continue
    const bytes = readFileSync(join(outDir, name))
    writeFileSync(
      join(outDir, `${name}.br`),
      brotliCompressSync(bytes, {
        params: {
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
          [constants.BROTLI_PARAM_QUALITY]: bytes.length > LARGE ? 9 : constants.BROTLI_MAX_QUALITY,
        },
      }),
    )
    writeFileSync(join(outDir, `${name}.gz`), gzipSync(bytes, { level: 9 }))
  }
}

/**
 * Whole or not at all: made beside and put in place by a rename.
 * @param dist the folder to make; @param stamp what is kept in it as `.inputs`; @param make
 *   builds into the folder it is given
 */
export async function buildWhole(dist, stamp, make) {
  const fresh = `${dist}.${process.pid}`
  mkdirSync(fresh, { recursive: true })
  try {
    await make(fresh)
    compress(fresh)
    writeFileSync(join(fresh, '.inputs'), stamp)
    rmSync(dist, { recursive: true, force: true })
    renameSync(fresh, dist)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
