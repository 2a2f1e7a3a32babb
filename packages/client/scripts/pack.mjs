// Makes the package that npm gets, in a folder: built modules with their types, and a manifest that
// names the libraries that the modules import, in the versions of this repository. Run by
// scripts/pack-client.mjs and by the test of the package.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsdown'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')
const json = (path) => JSON.parse(readFileSync(path, 'utf8'))

/** `@scope/name` or `name` of what a module imports. */
const packageOf = (specifier) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** What the built modules import of others. A text `"from"` or `"usd_from"` is none. */
function importsOf(dist) {
  const packages = new Set()
  for (const file of globSync('*.js', { cwd: dist })) {
    for (const [, specifier] of readFileSync(join(dist, file), 'utf8').matchAll(
      /(?<![\w"])(?:from|import\() ?"([^"./][^"]*)"/g,
    )) {
      packages.add(packageOf(specifier))
    }
  }
  return [...packages].sort()
}

/** Versions that the house's own packages name, which are exact. */
function versions() {
  const dependencies = {}
  for (const name of ['client', 'request-auth', 'policy', 'chains'])
    Object.assign(dependencies, json(join(folder, '..', name, 'package.json')).dependencies)
  return dependencies
}

/** @param out the folder to make @returns the manifest */
export async function makePackage(out) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const dist = join(out, 'dist')
  await build({ cwd: folder, outDir: dist, logLevel: 'error' })
  const { name, version, description, license } = json(join(folder, 'package.json'))
  const pinned = versions()
  const dependencies = Object.fromEntries(
    importsOf(dist).map((each) => {
      if (pinned[each] === undefined)
        throw new Error(`the built client imports ${each}, which no package.json names`)
      return [each, pinned[each]]
    }),
  )
  const entry = (file) => ({ types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` })
  const manifest = {
    name,
    version,
    description,
    license,
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20' },
    files: ['dist'],
    exports: {
      '.': entry('index'),
      './approvals': entry('approvals'),
      './verify-address': entry('verify-address'),
      './verify-reserves': entry('verify-reserves'),
      './package.json': './package.json',
    },
    dependencies,
  }
  writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  cpSync(join(folder, 'README.md'), join(out, 'README.md'))
  cpSync(join(folder, '..', '..', 'LICENSE'), join(out, 'LICENSE'))
  return manifest
}
