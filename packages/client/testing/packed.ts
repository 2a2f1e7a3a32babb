import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makePackage } from '../scripts/pack.mjs'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/**
 * Packs the client, and unpacks the tarball in a project with only its dependencies.
 * @param folder gets the folders `made` (the package) and `project` (the project)
 * @returns the manifest of the package
 */
export async function installPacked(
  folder: string,
): Promise<{ dependencies: Record<string, string> }> {
  const [made, project] = [join(folder, 'made'), join(folder, 'project')]
  const manifest = await makePackage(made)
  const packed = spawnSync('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: made,
    encoding: 'utf8',
  })
  assert.equal(packed.status, 0, packed.stderr)
  const installed = join(project, 'node_modules', '@custody', 'client')
  mkdirSync(installed, { recursive: true })
  const unpacked = spawnSync(
    'tar',
    ['-xzf', join(folder, packed.stdout.trim()), '--strip-components=1', '-C', installed],
    { encoding: 'utf8' },
  )
  assert.equal(unpacked.status, 0, unpacked.stderr)
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  // Dependencies as npm would install them: these versions, and nothing else of this repository.
  for (const [name, version] of Object.entries(manifest.dependencies)) {
    const from = realpathSync(join(root, 'node_modules', name))
    assert.equal(
      (JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as { version: string }).version,
      version,
      name,
    )
    const to = join(project, 'node_modules', name)
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(from, to)
  }
  return manifest
}
