import { createPublicKey } from 'node:crypto'
import assert from 'node:assert/strict'
import {
  canonicalText,
  checkDocument,
  documentHash,
  type CarriedApproval,
  type Person,
  type PolicyDocument,
  type Statement,
} from '@custody/policy'
import { nodesHash } from '../src/governance/word.ts'
import { documentWith, keyOf } from '../../policy/testing/documents.ts'
import { possessionsOf } from '../../policy/testing/governance.ts'
import { signWith } from '../../policy/testing/statements.ts'
import { signed, type Answer, type SignerCluster, type Workspace } from './signer-cluster.ts'

/** The policy of a workspace at three real nodes, with the people of the policy package's tests. */
export class TestPolicy {
  readonly #cluster: SignerCluster
  readonly workspace: string
  readonly document: PolicyDocument
  readonly hash: string

  /**
   * @param owner API key that belongs to Frank
   * @param fields further fields of the document
   */
  constructor(
    cluster: SignerCluster,
    { name }: Workspace,
    rules: readonly unknown[],
    owner: string,
    fields: object = {},
  ) {
    this.#cluster = cluster
    this.workspace = name
    const identities = new Map(
      cluster.peers.nodes.map(({ node, identity }) => [node, createPublicKey(identity)]),
    )
    const place = { mode: 'local', workspace: name, nodes: nodesHash(identities) }
    const people = (documentWith().people as Person[]).map((person) =>
      person.id === 'frank' ? { ...person, api_keys: [owner] } : person,
    )
    this.document = checkDocument(documentWith(rules, { ...place, people, ...fields }))
    this.hash = documentHash(this.document)
  }

  /** The first document with its proofs, as an operator enters it. */
  get first() {
    return {
      workspace: this.workspace,
      document: canonicalText(this.document),
      possessions: possessionsOf(this.document).map((proof) => JSON.stringify(proof)),
    }
  }

  /** Enters the document at nodes 1 and 2; node 3 takes it from them. */
  async install(): Promise<void> {
    for (const node of [1, 2])
      signed(await this.#cluster.operator(node, 'policy-install', this.first))
    for (const node of [1, 2, 3]) {
      const { body } = await this.#cluster.post(node, '/policy', { workspace: this.workspace })
      assert.equal(body.hash, this.hash, JSON.stringify(body))
    }
  }

  /** Returns a signed statement of a person, as JSON text. */
  statement(by: string, fields: object): string {
    const { mode, workspace, nodes } = this.document
    const at = Math.floor(Date.now() / 1000)
    const common = { v: 1, mode, workspace, nodes, by, key: 'k1', at, expires: at + 3600 }
    return JSON.stringify(signWith(keyOf(by), { ...common, ...fields } as Statement))
  }

  stop(by: string, sub_account: string | null = null): string {
    return this.statement(by, { kind: 'stop', sub_account, reason: 'A key was stolen' })
  }

  /**
   * Returns a person's signed decision about an act, as orders carry it.
   * @param shown fields of the statement, as a node returns them from `POST /policy/judge`
   */
  decide(by: string, shown: { id: string }, fields: Partial<CarriedApproval> = {}) {
    const at = Math.floor(Date.now() / 1000)
    const decision = {
      decision: 'approve' as const,
      by,
      key: 'k1',
      at,
      expires: at + 3600,
      ...fields,
    }
    const statement = { kind: 'approval', ...shown, ...decision } as unknown as Statement
    return { id: shown.id, ...decision, signature: signWith(keyOf(by), statement).signature }
  }

  /** Presents a statement to one node, as the platform does. */
  present(node: number, text: string): Promise<Answer> {
    const item = { kind: 'statement', workspace: this.workspace, signed: text }
    return this.#cluster.post(node, '/policy/present', { item })
  }

  /** Presents the end of a stop to one node, with the approvals of two admins. */
  resume(node: number, stop: string, stopHash: string): Promise<Answer> {
    const policy = { number: 1, hash: this.hash }
    const approvals = ['alice', 'bob'].map((by) =>
      this.statement(by, { kind: 'resume', policy, stop: stopHash }),
    )
    const item = { kind: 'resumed', workspace: this.workspace, stop, approvals }
    return this.#cluster.post(node, '/policy/present', { item })
  }
}
