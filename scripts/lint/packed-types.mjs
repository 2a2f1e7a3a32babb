// Packs @custody/client as for npm, and runs attw ("are the types wrong"), which resolves its types
// as each kind of project does.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { makePackage } from '../../packages/client/scripts/pack.mjs'

/**
 * Resolution modes that are not supported, because the client is an ES module only: resolution as
 * in Node 10, and require.
 */
const NOT_MEANT = new Set(['node10', 'node16-cjs'])

async function check(folder) {
  const made = join(folder, 'made')
  await makePackage(made)
  const packed = spawnSync('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: made,
    encoding: 'utf8',
  })
  if (packed.status !== 0) throw new Error(`npm pack: ${packed.stderr}`)
  const tarball = Uint8Array.from(readFileSync(join(folder, packed.stdout.trim())))
  const { types, problems = [] } = await checkPackage(createPackageFromTarballData(tarball))
  if (types === false || types.kind !== 'included') return ['it brings no types']
  return problems
    .filter(({ resolutionKind }) => !NOT_MEANT.has(resolutionKind))
    .map((each) => JSON.stringify(each))
}

const folder = mkdtempSync(join(tmpdir(), 'custody-packed-types-'))
try {
  const problems = await check(folder)
  for (const each of problems) console.error(`@custody/client: ${each}`)
  if (problems.length === 0) console.log('The types of the packed @custody/client resolve.')
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
