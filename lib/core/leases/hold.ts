import { hash, randomBytes } from 'node:crypto';
import type { Shares } from '../words/call-options.js';
import { MOST_FENCES, type HoldRecord } from '../seam/lock-store.js';
import type { TicketEntry } from './ticket.js';

/** The length of an owner's id, in characters of 6 bits. */
const ID_LENGTH = 22;
/** A secret has 128 random bits. */
const SECRET_BYTES = 16;
/** How many owners are made together. */
const SPARE_OWNERS = 64;

/**
 * The owner under which an acquisition holds all the keys that it acquires itself. Whoever knows the secret may enter
 * the owner's locks, so the secret leaves the process in tickets only; stores, and everything that traces their
 * commands, see the id, which is the secret's SHA-256.
 */
export class Owner {
  /** Owners for the next acquisitions. A hash in each call runs cold code; many in a row take a tenth of its time. */
  static readonly #spare: Owner[] = [];

  readonly id: string;
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
    this.id = hash('sha256', secret, 'base64url').slice(0, ID_LENGTH);
  }

  /** A new owner, with a secret of its own. */
  static next(): Owner {
    if (Owner.#spare.length === 0) {
      const random = randomBytes(SPARE_OWNERS * SECRET_BYTES);
      for (let at = 0; at < random.length; at += SECRET_BYTES) {
        Owner.#spare.push(new Owner(random.toString('base64url', at, at + SECRET_BYTES)));
      }
    }
    return Owner.#spare.pop() as Owner;
  }

  /** For tickets: a capability, never logged. */
  revealSecret(): string {
    return this.#secret;
  }
}

/**
 * An object that is in one chain at most. A `Set` that grows and shrinks all the time leaves a chain of former tables
 * behind: once the first of them is old, V8's collector of young garbage keeps all objects that were in any of them.
 */
export class Link {
  #before: Link = this;
  #after: Link = this;

  get isLinked(): boolean {
    return this.#after !== this;
  }

  /** Becomes the last of the chain that begins with `head`, which is no member itself. */
  linkTo(head: Link): void {
    this.#before = head.#before;
    this.#after = head;
    head.#before.#after = this;
    head.#before = this;
  }

  /** Leaves its chain. It then refers to none of the others. */
  unlink(): void {
    this.#before.#after = this.#after;
    this.#after.#before = this.#before;
    this.#before = this;
    this.#after = this;
  }

  /** The members of the chain that begins with it, as they are now. */
  get members(): Link[] {
    const members: Link[] = [];
    for (let at = this.#after; at !== this; at = at.#after) {
      members.push(at);
    }
    return members;
  }
}

/** An entry of this process into a lock: the record by which the store knows it, and the fences that it was granted. */
export class Hold extends Link {
  /** The prefix of the ids of this process's holds: no other process uses an id of this process. */
  static readonly #process = randomBytes(12).toString('base64url');
  static #count = 0;

  readonly key: string;
  /** With whom it shares the key; undefined in write mode. */
  readonly shares: Shares | undefined;
  /** Whether it entered a running lock by a ticket, and so has no line in this process. */
  readonly isJoined: boolean;
  #owner: Owner;
  #id: string;
  #fence: number;
  /** The fence of its lock in the store: the first of the block. Other calls may have had this fence before. */
  #storedFence: number;
  /** How many fences it asks the store for; 0 until the first attempt. Every attempt of one hold asks for as many. */
  #fences = 0;
  /** The attempts at it that were not answered: those on their way, and those whose outcome stayed unknown. */
  #unanswered = 0;
  /** How many calls have had it before, one after the other. */
  #served = 0;
  /** The calls that are in it together; undefined where it is one call's. */
  #users: { count: number } | undefined;
  #hasTicket: boolean;

  /** `joined`: the lock to enter by a ticket; undefined for one that is to be acquired. */
  constructor(key: string, owner: Owner, shares: Shares | undefined, joined: TicketEntry | undefined) {
    super();
    this.key = key;
    this.shares = joined ? joined.shares : shares;
    this.#owner = owner;
    this.#id = Hold.#nextId(owner);
    this.isJoined = joined !== undefined;
    this.#hasTicket = this.isJoined;
    this.#fence = joined?.fence ?? 0;
    this.#storedFence = joined?.storedFence ?? 0;
  }

  /** Two processes that were made of one memory image count alike, but soon have other owners. */
  static #nextId({ id }: Owner): string {
    return `${Hold.#process}${(Hold.#count++).toString(36)}-${id.slice(0, 6)}`;
  }

  get owner(): Owner {
    return this.#owner;
  }

  get fence(): number {
    return this.#fence;
  }

  get storedFence(): number {
    return this.#storedFence;
  }

  /** Whether the store granted it to an earlier call, whose lease serves the present call. */
  get isReused(): boolean {
    return this.#served > 0 && !this.isJoined;
  }

  /**
   * Whether a ticket of it was made, so that other processes may be in the lock: the lock may then live on by a longer
   * lease than this one.
   */
  get hasTicket(): boolean {
    return this.#hasTicket;
  }

  /** Whether an attempt at it may still arrive. */
  get isUnanswered(): boolean {
    return this.#unanswered > 0;
  }

  /**
   * Whether it has a turn for one call more, and nobody else is in the lock: a fence of its block, or one of as many
   * turns for a permit, which needs none.
   */
  get hasNextTurn(): boolean {
    if (this.shares !== undefined) {
      return this.shares !== 'read' && this.#served + 1 < MOST_FENCES;
    }
    return !this.#hasTicket && this.#fence + 1 < this.#storedFence + this.#fences;
  }

  /**
   * A released hold never comes in again, so the next attempt is another hold. A joined hold keeps its fences: they
   * name the lock it joined.
   */
  newId(): void {
    this.#id = Hold.#nextId(this.#owner);
    this.#unanswered = 0;
    this.#served = 0;
    this.#users = undefined;
    if (!this.isJoined) {
      this.#storedFence = 0;
      this.#fences = 0;
    }
  }

  /** An attempt at it is sent. */
  sent(): void {
    this.#unanswered++;
  }

  /** An attempt at it was answered, or is known not to have been carried out. */
  answered(): void {
    this.#unanswered--;
  }

  /** Asks for so many fences, unless it has asked before. */
  askFor(fences: number): void {
    if (this.#fences === 0) {
      this.#fences = Math.min(fences, MOST_FENCES);
    }
  }

  /** The store granted it; false where it was granted before, or to the call before. */
  granted(fence: number): boolean {
    const isNew = this.#storedFence === 0;
    if (isNew) {
      this.#storedFence = fence;
      this.#fence = fence;
    }
    return isNew;
  }

  /** Becomes the entry that `before` is, for the next call of the process: in write mode with its next fence. */
  takeOver(before: Hold): void {
    this.#owner = before.#owner;
    this.#id = before.#id;
    this.#storedFence = before.#storedFence;
    this.#fences = before.#fences;
    this.#unanswered = before.#unanswered;
    this.#fence = before.#fence + (this.shares === undefined ? 1 : 0);
    this.#served = before.#served + 1;
  }

  /** Becomes the entry that `other` is: both calls are in it. */
  enterBeside(other: Hold): void {
    this.takeOver(other);
    this.#users = other.#users ??= { count: 1 };
    this.#users.count++;
  }

  /** Whether other calls are in it too. */
  get hasOthers(): boolean {
    return this.#users !== undefined && this.#users.count > 1;
  }

  /** Its call leaves it; whether it was the last one. */
  leave(): boolean {
    return this.#users === undefined || --this.#users.count === 0;
  }

  /** Makes its part of a ticket: from now on others may be in the lock. */
  makeTicketEntry(): Omit<TicketEntry, 'store'> {
    this.#hasTicket = true;
    return this.#ticket(this.#owner.revealSecret());
  }

  /** The part of a ticket that lets nobody in: the lock has ended for its call, and may be another call's. */
  get ticketOfNone(): Omit<TicketEntry, 'store'> {
    return this.#ticket('');
  }

  /** The record that a store is given to acquire, join, renew or release the hold. */
  protected recordFor(ttlMs: number, limitMs: number, lingering: boolean, by: string): HoldRecord {
    return Object.freeze({
      key: this.key,
      owner: this.#owner.id,
      id: this.#id,
      fence: this.#storedFence,
      fences: Math.max(1, this.#fences),
      shares: this.shares,
      ttlMs,
      limitMs,
      lingering,
      unanswered: this.#unanswered > 0,
      by,
    });
  }

  #ticket(secret: string): Omit<TicketEntry, 'store'> {
    return { key: this.key, secret, fence: this.#fence, storedFence: this.#storedFence, shares: this.shares };
  }
}
