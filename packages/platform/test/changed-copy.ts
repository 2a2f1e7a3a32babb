import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const HEAVY = new Set(['node_modules', 'target'])

type Registry = Record<'networks' | 'assets' | 'coins', Record<string, unknown>[]>

/** A copy of the source tree in which somebody has changed something; installed packages are the original's. */
export class ChangedCopy {
  readonly root = mkdtempSync(join(tmpdir(), 'custody-copy-'))

  constructor() {
    cpSync(join(ROOT, 'packages'), join(this.root, 'packages'), { recursive: true, filter: (path) => !HEAVY.has(basename(path)) })
    cpSync(join(ROOT, 'scripts'), join(this.root, 'scripts'), { recursive: true })
    const modules = join(this.root, 'node_modules')
    mkdirSync(join(modules, '@custody'), { recursive: true })
    for (
      const name of readdirSync(join(ROOT, 'node_modules'))
    ) if (name !== '@custody' && name !== '.bin') symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
    for (const name of readdirSync(join(this.root, 'packages'))) {
      symlinkSync(join(this.root, 'packages', name), join(modules, '@custody', name))
      const own = join(ROOT, 'packages', name, 'node_modules')
      if (
        readdirSync(join(ROOT, 'packages', name)).includes('node_modules')
      ) symlinkSync(own, join(this.root, 'packages', name, 'node_modules'))
    }
  }

  /** Adds lines to the asset registry, each to the list that lines of its kind are in. */
  addToRegistry(lines: readonly Record<string, unknown>[]): void {
    const file = join(this.root, 'packages', 'chains', 'data', 'registry.json')
    const registry = JSON.parse(readFileSync(file, 'utf8')) as Registry
    for (const line of lines) registry['asset_name' in line ? 'assets' : 'code' in line ? 'networks' : 'coins'].push(line)
    writeFileSync(file, JSON.stringify(registry))
  }

  /** Runs one test file of the copy. */
  test(path: string): { status: number | null; output: string } {
    // Not as a part of the run that this is in.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--test', join(this.root, path)], { encoding: 'utf8', env })
    return { status, output: stdout + stderr }
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** The blocks of one language in a document, in order. */
export function fencedBlocks(document: string, language: string): string[] {
  const text = readFileSync(join(ROOT, document), 'utf8')
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map((match) => match[1] as string)
}
