// Creates the software bill of materials of a release (CycloneDX 1.5): npm's own list of the
// runtime packages, and the crates of the Rust addons.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const LOCKS = ['packages/threshold/native/Cargo.lock', 'packages/key-encryption/native/Cargo.lock']

/** Returns crates of a Cargo.lock that come from the registry, as components of CycloneDX. */
export function cratesOf(lock) {
  return lock
    .split('[[package]]')
    .slice(1)
    .flatMap((block) => {
      const field = (name) => new RegExp(`^${name} = "([^"]+)"$`, 'm').exec(block)?.[1]
      const [name, version, checksum] = ['name', 'version', 'checksum'].map(field)
      // Our own crates have no source and no checksum.
      if (checksum === undefined) return []
      const purl = `pkg:cargo/${name}@${version}`
      return [
        {
          'bom-ref': purl,
          type: 'library',
          name,
          version,
          purl,
          hashes: [{ alg: 'SHA-256', content: checksum }],
        },
      ]
    })
}

/**
 * @param root folder of the installed repository
 * @throws Error with npm's message
 */
export function sbomOf(root) {
  const { status, stdout, stderr, error } = spawnSync(
    'npm',
    ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--omit=dev'],
    { cwd: root, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 },
  )
  if (status !== 0) throw new Error(`npm sbom failed: ${error?.message ?? stderr}`)
  const sbom = JSON.parse(stdout)
  const crates = new Map(
    LOCKS.flatMap((path) => cratesOf(readFileSync(join(root, path), 'utf8'))).map((crate) => [
      crate.purl,
      crate,
    ]),
  )
  return { ...sbom, components: [...sbom.components, ...crates.values()] }
}
