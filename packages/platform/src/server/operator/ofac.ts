import { existsSync } from 'node:fs'
import { reasonOf } from '@custody/chains/reason'
import { readAnyList, readList, replaceList } from '../../custody/aml/ofac-file.ts'
import { refreshedFile, sanctionsFile } from '../../custody/aml/ofac.ts'
import { readVariable } from '../../core/settings/settings.ts'
import { OperatorError } from './command.ts'

interface Outcome {
  result: Record<string, unknown>
  text: string
}

/**
 * Replaces the list of sanctioned addresses. A running platform with this data folder uses it
 * immediately.
 */
export async function refreshOfac(
  home: string,
  file: string | undefined,
  o: {
    asset: string | null
    published: string | null
    force: boolean
  },
): Promise<Outcome> {
  if (file === undefined) {
    throw new OperatorError(
      'aml refresh-ofac FILE: must be OFAC’s sdn_advanced.xml or sdn.xml, a list of this platform, or a file with one address per line',
    )
  }
  if (!existsSync(file)) throw new OperatorError(`the file ${file} does not exist`)
  const setting = readVariable('CUSTODY_OFAC_FILE') ?? null
  try {
    const next = await readAnyList(file, o)
    const inUse = sanctionsFile(home, setting)
    const { added, removed } = replaceList(
      setting ?? refreshedFile(home),
      existsSync(inUse) ? readList(inUse) : null,
      next,
      o.force,
    )
    return {
      result: { published: next.published, addresses: next.addresses.length, added, removed },
      text: `${next.addresses.length} sanctioned addresses as of ${next.published}: ${added} added, ${removed} removed`,
    }
  } catch (error) {
    throw new OperatorError(`${file}: ${reasonOf(error)}`)
  }
}
