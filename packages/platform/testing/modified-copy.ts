import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SERVER_URL } from './test-database.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const HEAVY = new Set(['node_modules', 'target', '.git', '.custody'])

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

type Registry = Record<'networks' | 'assets' | 'coins', Record<string, unknown>[]>

/**
 * A copy of the source tree that a test can change. It uses the installed packages of the original.
 */
export class ModifiedCopy {
  readonly root = mkdtempSync(join(tmpdir(), 'custody-copy-'))

  constructor() {
    for (const name of readdirSync(ROOT)) {
      if (HEAVY.has(name)) continue
      cpSync(join(ROOT, name), join(this.root, name), {
        recursive: true,
        filter: (path) => !HEAVY.has(basename(path)),
      })
    }
    for (const tools of readdirSync(join(ROOT, 'scripts'))) {
      const own = join(ROOT, 'scripts', tools, 'node_modules')
      if (existsSync(own)) symlinkSync(own, join(this.root, 'scripts', tools, 'node_modules'))
    }
    const modules = join(this.root, 'node_modules')
    mkdirSync(join(modules, '@custody'), { recursive: true })
    for (const name of readdirSync(join(ROOT, 'node_modules')))
      if (name !== '@custody' && name !== '.bin')
        symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
    for (const name of readdirSync(join(this.root, 'packages'))) {
      symlinkSync(join(this.root, 'packages', name), join(modules, '@custody', name))
      const own = join(ROOT, 'packages', name, 'node_modules')
      if (readdirSync(join(ROOT, 'packages', name)).includes('node_modules'))
        symlinkSync(own, join(this.root, 'packages', name, 'node_modules'))
    }
  }

  /** Runs a program of the copy with Node. */
  node(...args: string[]): { status: number | null; output: string } {
    // Without these variables, the program is not treated as a part of the current test run, and
    // does not use its database server, whose tables are those of the original.
    const { NODE_TEST_CONTEXT: _, [SERVER_URL]: _url, ...env } = process.env
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      env,
      cwd: this.root,
      maxBuffer: OUTPUT_BYTES_MAX,
    })
    return { status, output: stdout + stderr }
  }

  /**
   * Returns the paths of the files that only the copy has, and of those that differ from the
   * original.
   */
  changes(): { added: string[]; changed: string[] } {
    const filesOf = (root: string) =>
      ['packages', 'scripts']
        .flatMap((folder) =>
          readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
            join(folder, name),
          ),
        )
        .filter(
          (path) =>
            !path.split('/').some((part) => HEAVY.has(part)) && statSync(join(root, path)).isFile(),
        )
    const before = new Set(filesOf(ROOT))
    const now = filesOf(this.root)
    const differs = (path: string) =>
      !readFileSync(join(ROOT, path)).equals(readFileSync(join(this.root, path)))
    return {
      added: now.filter((path) => !before.has(path)).sort(),
      changed: now.filter((path) => before.has(path) && differs(path)).sort(),
    }
  }

  /** Applies a patch. @throws Error if it does not fit */
  apply(patch: string): void {
    const { status, stderr } = spawnSync('git', ['apply', '-'], {
      cwd: this.root,
      encoding: 'utf8',
      input: patch,
    })
    if (status !== 0) throw new Error(`${stderr}\n${patch}`)
  }

  /** Writes a new file. */
  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    writeFileSync(join(this.root, path), text)
  }

  /**
   * Runs the commands `npm run check` of a shell block.
   * @returns the output
   * @throws Error if a check fails, or the block has none
   */
  check(block: string): string {
    const commands = [...block.matchAll(/^npm run check -- (.+)$/gm)]
    if (commands.length === 0) throw new Error(`no check in ${block}`)
    return commands
      .map(([line, args = '']) => {
        const { status, output } = this.node('scripts/check.mjs', ...args.split(' '))
        if (status !== 0) throw new Error(`${line}\n${output}`)
        return output
      })
      .join('\n')
  }

  /** Adds a line to the end of a file. */
  append(path: string, line: string): void {
    appendFileSync(join(this.root, path), line)
  }

  /** Adds entries to the asset registry, each to the list of entries of its kind. */
  addToRegistry(lines: readonly Record<string, unknown>[]): void {
    const file = join(this.root, 'packages', 'chains', 'data', 'registry.json')
    const registry = JSON.parse(readFileSync(file, 'utf8')) as Registry
    for (const line of lines)
      registry['asset_name' in line ? 'assets' : 'code' in line ? 'networks' : 'coins'].push(line)
    writeFileSync(file, JSON.stringify(registry))
    this.node('node_modules/oxfmt/bin/oxfmt', file)
  }

  /** Runs one test file of the copy. */
  test(path: string): { status: number | null; output: string } {
    return this.node('--test', path)
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** Returns the code blocks of one language below a document's heading, in order. */
export function fencedBlocks(document: string, heading: string, language: string): string[] {
  const text =
    readFileSync(join(ROOT, document), 'utf8')
      .split(/^## /m)
      .find((section) => section.startsWith(`${heading}\n`)) ?? ''
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(
    (match) => match[1] as string,
  )
}
