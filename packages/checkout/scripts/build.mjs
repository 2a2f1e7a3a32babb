// Builds the checkout page and the widget into dist/. Run by scripts/build-sites.mjs.
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPage, buildWhole, common, target } from '@custody/site/build'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')

/** One classic script, for any shop's page. */
async function buildWidget(outDir) {
  const { build } = await import('vite')
  const parts = join(outDir, 'widget')
  await build({
    ...common(folder),
    build: {
      outDir: parts,
      target,
      reportCompressedSize: false,
      lib: {
        entry: join(folder, 'src', 'widget', 'widget.ts'),
        formats: ['iife'],
        name: 'CustodyWidget',
        fileName: () => 'widget.js',
      },
    },
  })
  cpSync(join(parts, 'widget.js'), join(outDir, 'widget.js'))
  rmSync(parts, { recursive: true })
}

/** @param dist the folder to make; @param stamp what is kept in it as `.inputs` */
export const build = (dist, stamp) =>
  buildWhole(dist, stamp, async (outDir) => {
    const html = await buildPage(folder, outDir, '/checkout/')
    // The same page for an address that names no invoice; it asks for nothing.
    writeFileSync(join(outDir, 'missing.html'), html.replace('<body>', '<body data-missing>'))
    await buildWidget(outDir)
  })
