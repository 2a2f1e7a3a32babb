import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { ModifiedCopy, fencedBlocks } from '../testing/modified-copy.ts'

// Carries out the examples of CONTRIBUTING.md in a copy of the source tree: writes the printed
// files, applies the patches and runs the commands that follow.
const copy = new ModifiedCopy()
after(() => copy.remove())

/**
 * Writes the files and applies the patches below a heading.
 * @returns the paths of the new files
 */
function follow(heading: string): string[] {
  const paths = fencedBlocks('CONTRIBUTING.md', heading, 'ts').map((block) => {
    const [, path, text] = /^\/\/ (packages\/\S+)\n([^]*)$/.exec(block) ?? []
    assert.ok(path !== undefined && text !== undefined, `no path in the first line of ${block}`)
    mkdirSync(dirname(join(copy.root, path)), { recursive: true })
    writeFileSync(join(copy.root, path), text)
    return path
  })
  for (const patch of fencedBlocks('CONTRIBUTING.md', heading, 'diff')) {
    const { status, stderr } = spawnSync('git', ['apply', '-'], {
      cwd: copy.root,
      encoding: 'utf8',
      input: patch,
    })
    assert.equal(status, 0, `${heading}: ${stderr}`)
  }
  return paths
}

const PROGRAMS = ['scripts/openapi.mjs', 'scripts/events-table.mjs']

for (const [heading, program, name] of [
  ['Add an endpoint', 'scripts/openapi.mjs', 'core/http/openapi/openapi'],
  ['Add an event', 'scripts/events-table.mjs', 'events/events/events-registry'],
] as const)
  test(`the example of "${heading}" compiles, and its tests pass`, () => {
    const paths = follow(heading)
    const commands = fencedBlocks('CONTRIBUTING.md', heading, 'sh').at(-1) ?? ''
    assert.ok(commands.includes(`npx node ${program}\n`), commands)
    for (const each of PROGRAMS.filter((name) => commands.includes(name))) {
      const { status, output } = copy.node(each)
      assert.equal(status, 0, output)
    }
    const types = copy.checkTypes(...paths)
    assert.equal(types.status, 0, types.output)
    const own = paths.filter((path) => path.endsWith('.test.ts'))
    assert.equal(own.length, 1)
    for (const path of [...own, `packages/platform/src/${name}.test.ts`]) {
      const { status, output } = copy.test(path)
      assert.equal(status, 0, output)
      assert.match(output, /^ℹ pass [1-9]/m)
    }
  })
