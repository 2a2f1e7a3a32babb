import { z } from 'zod'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { askAll, type Answer } from './node-answers.ts'

/** A node's refusal of an item that it has judged. */
interface ItemRefusal {
  /** Code of the policy language, such as `PENDING`. */
  code: string
  /** Node, code and reason. */
  text: string
}

/** What the nodes say about an item. */
export interface Presented {
  /** Nodes that have recorded it. */
  held: number[]
  refusals: ItemRefusal[]
}

const response = z.looseObject({})

const refusalOf = (answer: Answer<object>): ItemRefusal[] => {
  // Other errors may pass.
  if (!('refused' in answer) || answer.refused.code !== 'BAD_POLICY') return []
  const code = String(answer.refused.body['code'])
  return [{ code, text: `signer ${answer.node}: ${code}: ${answer.refused.message}` }]
}

/** Presents a signed item to all nodes. It changes nothing at a node that has it. */
export async function presentItem(signers: SignerNodes, item: object): Promise<Presented> {
  const answers = await askAll(signers, response, '/policy/present', { item })
  return {
    held: answers.flatMap((answer) => ('value' in answer ? [answer.node] : [])),
    refusals: answers.flatMap(refusalOf),
  }
}
