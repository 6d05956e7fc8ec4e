" Vim syntax of tl. Printed by `tl help --vim-syntax`.
if exists("b:current_syntax")
  finish
endif
syntax case match
syntax sync minlines=200
syntax keyword tlBuiltin abs acos adagrad adam adam_step adamw adapt add aggregate_neighbors
syntax keyword tlBuiltin all append apply_attention_mask apply_chat_template apply_mask approx_equal
syntax keyword tlBuiltin arange argmax argmin args argsort asin assert assert_about_eq assert_eq
syntax keyword tlBuiltin astype atan atan2 attention attention_with_cache avg_pool2d backward
syntax keyword tlBuiltin batch_norm bce_with_logits bernoulli binary_cross_entropy bit_and
syntax keyword tlBuiltin bit_not bit_or bit_xor bmm broadcast_to buffer_stats cat causal_mask
syntax keyword tlBuiltin ceil chat checkpoint cholesky chr chunk clamp cleanup clear clear_cache
syntax keyword tlBuiltin clip_grad_norm clock clone cndl_embedding cndl_layer_norm cndl_list_safetensors
syntax keyword tlBuiltin cndl_load_gguf_tensor cndl_load_safetensor cndl_rms_norm cndl_rope
syntax keyword tlBuiltin cndl_save_model_safetensor cndl_save_safetensor cndl_softmax combine_masks
syntax keyword tlBuiltin complex_score compute_hits_at_k compute_mean_rank compute_mrr compute_rank
syntax keyword tlBuiltin concat contains contiguous conv1d conv2d copy cos cosh count count_nonzero
syntax keyword tlBuiltin cross_entropy csv_rows cumprod cumsum custom_grad det detach detokenize
syntax keyword tlBuiltin detokenize_incremental detokenize_single device devices diag distmult_score
syntax keyword tlBuiltin div divmod dot dropout dtype e eigh einsum elu embed embedding empty
syntax keyword tlBuiltin ends_with enumerate env eprint eq erf error exists exit exp expand
syntax keyword tlBuiltin expm1 extend eye factorial filter find find_all flatten flip floor
syntax keyword tlBuiltin floor_div format forward from_array from_vec full fused_add_relu fused_affine
syntax keyword tlBuiltin fused_gelu_linear fused_mul_relu gather gcd ge gelu generate get get_tensor
syntax keyword tlBuiltin get_weight grad gradcheck grammar graph_attention group_norm gru_cell
syntax keyword tlBuiltin gt hardswish has_tensor help here hessian hook huber_loss image_folder
syntax keyword tlBuiltin index_of index_select inf input insert int_to_tokenids inv is_empty
syntax keyword tlBuiltin is_training isfinite isinf isnan jacobian join json_schema jvp keys
syntax keyword tlBuiltin kl_div layer_norm le leaky_relu len linear linspace lion list_dir
syntax keyword tlBuiltin load load_facts load_model load_model_f16 load_model_f32 load_tokenizer
syntax keyword tlBuiltin load_weight_cache_f16 load_weight_cache_f32 load_weight_cache_gguf_f16
syntax keyword tlBuiltin load_weight_cache_gguf_f32 loader log log10 log1p log2 log_sigmoid
syntax keyword tlBuiltin log_softmax logical_and logical_not logical_or logsumexp lower lstm_cell
syntax keyword tlBuiltin lt mae_loss map margin_ranking_loss masked_fill masked_select match_regex
syntax keyword tlBuiltin matmul max max_pool2d maximum mean median memory memory_report meta
syntax keyword tlBuiltin min min_p minimum mish mod mse_loss mul multinomial nan ndim ne neg
syntax keyword tlBuiltin new_tensor_buffer nll_loss nonzero norm normal normalize_features
syntax keyword tlBuiltin numel one_hot ones ones_like ord outer pad padding_mask panic parameters
syntax keyword tlBuiltin parse_json parts permute pi plot pop positional_encoding pow precompute_rope_cos
syntax keyword tlBuiltin precompute_rope_sin predict_head_complex predict_head_distmult predict_head_transe
syntax keyword tlBuiltin predict_tail_complex predict_tail_distmult predict_tail_transe print
syntax keyword tlBuiltin print_top_k prod push qr rand rand_like randint randn random_normal
syntax keyword tlBuiltin range_i rank read_csv read_file read_lines reduce regex relational_aggregate
syntax keyword tlBuiltin relu rem remove repeat repeat_kv repetition_penalty replace replace_regex
syntax keyword tlBuiltin reset_peak_memory reshape reversed rms_norm rmsprop rng_state roll
syntax keyword tlBuiltin rope rotate_score round rsqrt sample save save_facts save_model scan
syntax keyword tlBuiltin scatter scatter_add script_path seed set set_lr set_values sgd sgd_step
syntax keyword tlBuiltin shape shift_left shift_right sigmoid sign silu sin sinh sleep slice
syntax keyword tlBuiltin slice_last softmax softplus solve sort sorted split spmm sqrt square
syntax keyword tlBuiltin squeeze stack starts_with std step stop_gradient string_length string_substring
syntax keyword tlBuiltin sub sum svd swiglu synchronize take tan tanh tap temperature temperature_sample
syntax keyword tlBuiltin tensors text_windows tile time to to_float to_int to_json to_list
syntax keyword tlBuiltin tokenize top_k top_k_sample top_p top_p_sample topk trace transe_score
syntax keyword tlBuiltin transpose tril trim triu trunc type typical_p uniform unique unsqueeze
syntax keyword tlBuiltin upper value_and_grad values var vjp vmap where write_csv write_file
syntax keyword tlBuiltin zero zero_grad zeros zeros_like zip
syntax keyword tlType bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 q4_0
syntax keyword tlType q8_0 q6_k q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k iq4_nl iq4_xs tq1_0 tq2_0
syntax keyword tlType mxfp4 iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s iq1_s iq1_m any int float string
syntax keyword tlType str String Tensor list List tuple dict Dict function range void model
syntax keyword tlType Model tokenizer Tokenizer KVCache TensorBuffer
syntax keyword tlKeyword fn let return
syntax keyword tlConditional if else match
syntax keyword tlRepeat for in while loop break continue
syntax keyword tlException try catch
syntax keyword tlBoolean true false
syntax keyword tlConstant none
syntax keyword tlOperator and or not as
syntax match tlDeclaration "^\s*\zs\%(struct\|impl\|import\|test\|bench\|main\|entity\|relation\)\>\ze\%(\s\+[A-Za-z_\"{]\|<\)"
syntax match tlStatement "\<\%(tensor\|with\|learn\|retract\|infer\|why\|explain\)\>\ze\s\+[A-Za-z_{]"
syntax match tlModifier "\<\%(learnable\|equivalence\|of\|self\)\>"
syntax match tlFunction "\%(\<fn\s\+\)\@<=\K\k*"
syntax match tlField "\%(\.\|::\)\@<=\K\k*"
syntax match tlNumber "\<\d[0-9_]*\%(\.\%([0-9_]\+\|[.A-Za-z_]\@!\)\)\=\%([eE][-+]\=\d\+\)\=\>"
syntax match tlNumber "\<0x\x\+\>"
syntax match tlNumber "\<0b[01]\+\>"
syntax match tlEscape contained "\\[ntr0\"\\]"
syntax match tlEscape contained "\\u\%(\x\{4}\|{\x\{1,6}}\)"
syntax match tlEscape contained "{{\|}}"
syntax region tlString start=+"+ skip=+\\.+ end=+"+ contains=tlEscape
syntax region tlString start=+\<r"+ end=+"+
syntax region tlString start=+\<f"+ skip=+\\.+ end=+"+ contains=tlEscape,tlPlaceholder
syntax region tlPlaceholder contained matchgroup=tlEscape start=+{{\@!+ end=+}+ contains=TOP
syntax match tlComment "//.*$"
syntax region tlComment start="/\*" end="\*/" contains=tlComment
syntax match tlComment "\%^#!.*$"
highlight default link tlKeyword Keyword
highlight default link tlConditional Conditional
highlight default link tlRepeat Repeat
highlight default link tlException Exception
highlight default link tlBoolean Boolean
highlight default link tlConstant Constant
highlight default link tlOperator Operator
highlight default link tlDeclaration Structure
highlight default link tlStatement Statement
highlight default link tlModifier StorageClass
highlight default link tlType Type
highlight default link tlBuiltin Function
highlight default link tlFunction Function
highlight default link tlNumber Number
highlight default link tlEscape SpecialChar
highlight default link tlString String
highlight default link tlComment Comment
let b:current_syntax = "tl"
