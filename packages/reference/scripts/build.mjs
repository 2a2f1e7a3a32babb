// Builds the API reference into dist/. Run by scripts/build-sites.mjs.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPage, buildWhole } from '@custody/site/build'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')

/**
 * Scalar's script for browsers, of which npm has this one package alone that brings it whole: the
 * plugin hands it out.
 */
async function scalar() {
  const [{ default: Fastify }, { default: plugin }] = await Promise.all([
    import('fastify'),
    import('@scalar/fastify-api-reference'),
  ])
  const server = Fastify()
  await server.register(plugin, {
    routePrefix: '/reference',
    configuration: { url: '/openapi.json' },
  })
  const { statusCode, body } = await server.inject('/reference/js/scalar.js')
  await server.close()
  if (statusCode !== 200 || body.length < 1_000_000)
    throw new Error('the plugin does not hand out the script of the reference')
  return body
}

/** @param dist the folder to make; @param stamp what is kept in it as `.inputs` */
export const build = (dist, stamp) =>
  buildWhole(dist, stamp, async (outDir) => {
    const html = await buildPage(folder, outDir, '/reference/')
    const script = await scalar()
    const name = `scalar-${createHash('sha256').update(script).digest('base64url').slice(0, 8)}.js`
    writeFileSync(join(outDir, 'assets', name), script)
    const own = html.indexOf('<script')
    if (own < 0) throw new Error('the page has no script')
    // Classic and deferred: it runs before the page's own module.
    const file = join(outDir, 'index.html')
    const whole = readFileSync(file, 'utf8')
    writeFileSync(
      file,
      `${whole.slice(0, own)}<script defer src="/reference/assets/${name}"></script>\n${whole.slice(own)}`,
    )
  })
